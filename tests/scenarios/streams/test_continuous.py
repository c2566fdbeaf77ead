"""The continuous stream follows its schedule, and its batches do not reveal the tasks."""

import numpy as np
import pytest
import torch
from scipy import stats
from small_streams import CONTINUOUS

from bgd.scenarios import Continuous, permute
from bgd.scenarios.streams import continuous


def test_mixed_batches_hold_each_sample_of_its_task_in_the_order_sampled(data):
    stream = Continuous(permute(data, 3, shared_head=True), CONTINUOUS, iterations=60, batch_size=32)
    i = next(i for i in range(60) if isinstance(stream.sample(i)[0], np.ndarray))
    tasks, where = stream.sample(i)
    batch = stream[i]
    for b, (t, row) in enumerate(zip(tasks, where, strict=True)):
        part = stream.tasks[t].train
        image = data.train.images[row].flatten() / 255
        expected = image if part.transform is None else image[part.transform.order]
        torch.testing.assert_close(batch.x[b].flatten(), expected)
        assert batch.y[b] == data.train.labels[row]


def test_continuous_follows_its_schedule(data):
    """The sampled counts are binomial around the expected ones, and images are uniform, with replacement."""
    stream = Continuous(permute(data, 4, shared_head=True), CONTINUOUS, iterations=2000, batch_size=64)
    iterations = range(len(stream))
    expected, sampled = stream.expected_proportions(iterations), stream.sampled_proportions(iterations)
    assert (sampled[expected == 0] == 0).all()
    inside = (expected > 0) & (expected < 1)
    z = (sampled - expected)[inside] / np.sqrt((expected * (1 - expected))[inside] / 64)
    assert abs(z.mean()) < 0.1
    assert z.std() == pytest.approx(1, abs=0.05)
    rows = np.concatenate([stream.sample(i)[1] for i in range(300)])
    assert stats.chisquare(np.bincount(rows, minlength=len(data.train))).pvalue > 0.01


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_extreme_random_words_choose_a_task_that_is_present(data, monkeypatch, word):
    monkeypatch.setattr(continuous, "random_words", lambda *_: np.full(_[-1], word, dtype=np.uint64))
    stream = Continuous(permute(data, 5, shared_head=True), CONTINUOUS, iterations=100, batch_size=2)
    for i in range(100):
        task, where = stream.sample(i)
        present = np.flatnonzero(stream.expected_proportions([i])[0])
        assert task == present[0 if word == 0 else -1]
        assert (where == (0 if word == 0 else len(data.train) - 1)).all()


def test_tasks_of_a_batch_are_in_no_order(data):
    """Sorted tasks would reveal where one ends: neighbours must agree as often as any two samples do."""
    stream = Continuous(permute(data, 2, shared_head=True), CONTINUOUS, iterations=400, batch_size=64)
    mixed = np.stack([t for i in range(180, 220) if isinstance(t := stream.sample(i)[0], np.ndarray)])
    assert (mixed[:, 1:] == mixed[:, :-1]).mean() == pytest.approx(0.5, abs=0.05)


def test_hard_switches(data):
    stream = Continuous(permute(data, 3, shared_head=True), CONTINUOUS, iterations=30, beta=1)
    assert [stream.sample(i)[0] for i in range(30)] == [0] * 10 + [1] * 10 + [2] * 10
    assert stream.stages == (10, 20, 30)
