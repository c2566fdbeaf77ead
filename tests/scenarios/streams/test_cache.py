"""Caches of a stream: bounded, and invisible in what they return."""

import numpy as np
from small_data import make_data

from bgd.scenarios import permute
from bgd.scenarios.streams.cache import TransformedImageCache

ALL = np.arange(103)
ONE_TASK = 103 * 16  # bytes of the transformed images of a task


def test_the_task_used_longest_ago_is_dropped_first():
    tasks = permute(make_data(), 4, shared_head=True)
    cache = TransformedImageCache(2 * ONE_TASK)
    for t in (1, 2, 1, 3):
        assert (cache.pixels(t, tasks[t].train, ALL) == tasks[t].train.pixels(ALL)).all()
    assert list(cache._task_caches) == [1, 3]
    assert cache.size == 2 * ONE_TASK


def test_a_task_that_does_not_fit_is_not_cached():
    tasks = permute(make_data(), 2, shared_head=True)
    cache = TransformedImageCache(ONE_TASK - 1)
    assert (cache.pixels(1, tasks[1].train, ALL) == tasks[1].train.pixels(ALL)).all()
    assert cache.size == 0


def test_what_is_returned_is_no_view_of_the_cache():
    tasks = permute(make_data(), 2, shared_head=True)
    cache = TransformedImageCache(ONE_TASK)
    cache.pixels(1, tasks[1].train, ALL).fill(0)
    assert (cache.pixels(1, tasks[1].train, ALL) == tasks[1].train.pixels(ALL)).all()
