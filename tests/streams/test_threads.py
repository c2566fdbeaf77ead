"""A stream learner multiplies with one thread, whatever is set outside."""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from bgd.streams.threads import one_thread


def threads() -> set[int]:
    return {library["num_threads"] for library in ThreadpoolController().info() if library["user_api"] == "blas"}


def test_inside_there_is_one_thread_and_outside_what_was_set():
    with threadpool_limits(2, user_api="blas"):
        assert one_thread(threads)() == {1}
        assert threads() == {2}


def test_it_is_set_back_after_an_error():
    def wrong() -> None:
        raise ZeroDivisionError(threads())

    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError, match=r"\{1\}"):
            one_thread(wrong)()
        assert threads() == {2}


def test_a_learner_uses_it(monkeypatch):
    from bgd import StreamClassifier
    from bgd.streams import filters

    seen: list[set[int]] = []
    learn = filters.learn_

    def watched(*args):
        seen.append(threads())
        return learn(*args)

    monkeypatch.setattr("bgd.streams.classes.learn_", watched)
    with threadpool_limits(2, user_api="blas"):
        StreamClassifier().partial_fit(np.eye(4), [0, 1, 0, 1])
    assert seen == [{1}]
