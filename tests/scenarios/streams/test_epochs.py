"""Discrete and joint streams: every sample once an epoch."""

import itertools

import numpy as np
import torch
from small_streams import AGNOSTIC

from bgd.scenarios import Discrete, Joint, permute, scenario, split


def test_discrete_shows_every_sample_once_an_epoch_in_another_order(data):
    tasks = split(data, 5, shared_head=False)
    stream = Discrete(tasks, scenario("class"), epochs=3, batch_size=8)
    samples = [stream.sample(i) for i in range(len(stream))]
    for t, group in itertools.groupby(samples, key=lambda pair: pair[0]):
        rows = np.concatenate([where for _, where in group])
        epochs = rows.reshape(3, -1)
        assert (np.sort(epochs, axis=1) == np.arange(len(tasks[t].train))).all()
        assert (epochs[0] != epochs[1]).any()
        assert (epochs[1] != epochs[2]).any()
    sizes = [len(batch.y) for batch in stream][:3]
    n = len(tasks[0].train)
    assert sizes == [8, 8, n - 16]
    assert stream.stages[-1] == len(stream)


def test_batches_hold_the_chosen_samples(data):
    stream = Discrete(permute(data, 3, shared_head=True), AGNOSTIC, epochs=2, batch_size=16)
    for i in (0, 7, 20, 40):
        task, where = stream.sample(i)
        part = stream.tasks[task].train
        expected = data.train.images[where].flatten(1) / 255
        if part.transform is not None:
            expected = expected[:, part.transform.order]
        torch.testing.assert_close(stream[i].x.flatten(1), expected)
        assert torch.equal(stream[i].y, data.train.labels[where])


def test_joint_covers_all_tasks_every_epoch(data):
    stream = Joint(split(data, 5, shared_head=False), scenario("class"), epochs=2, batch_size=10)
    half = len(stream) // 2
    y = torch.cat([stream[i].y for i in range(half)])
    assert torch.equal(y.sort().values, torch.cat([t.train.labels for t in stream.tasks]).sort().values)
    assert all(torch.equal(batch.task, batch.y // 2) for batch in stream)
    np.testing.assert_allclose(stream.expected_proportions([0]).sum(), 1)
