"""Reservoir sampling: a uniform choice, whatever the order."""

from __future__ import annotations

import torch

from bgd.methods.curvature.reservoir import Reservoir
from bgd.methods.curvature.task_curvature import Samples


def test_every_sample_is_stored_with_the_same_probability():
    counts = torch.zeros(30)
    for seed in range(2000):
        reservoir = Reservoir(6, torch.Generator().manual_seed(seed))
        for i in range(0, 30, 10):
            reservoir.add(Samples(torch.arange(i, i + 10)[:, None], torch.arange(i, i + 10), torch.ones(4).bool()))
        assert torch.equal(reservoir.samples.x[:, 0], reservoir.samples.y)
        assert reservoir.samples.mask.shape == (6, 4)
        counts[reservoir.samples.y] += 1
    assert ((counts / 2000 - 0.2).abs() < 5 * (0.2 * 0.8 / 2000) ** 0.5).all()
