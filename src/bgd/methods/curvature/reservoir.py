"""A fixed number of samples of a task, stored for later."""

from __future__ import annotations

import torch
from torch import Tensor

from bgd.methods.curvature.task_curvature import Samples


class Reservoir:
    """A uniform sample of fixed size from a stream of batches (reservoir sampling).

    Args:
        size: how many samples to keep; None for all.
        generator: of the choice.

    >>> reservoir = Reservoir(2, torch.Generator().manual_seed(0))
    >>> for i in range(4): reservoir.add(Samples(torch.full((3, 1), i), torch.zeros(3), None))
    >>> reservoir.samples.x.shape
    torch.Size([2, 1])
    """

    def __init__(self, size: int | None, generator: torch.Generator) -> None:
        self.size, self.generator = size, generator
        self._kept: tuple[Tensor, Samples] | None = None

    @property
    def samples(self) -> Samples:
        """The stored samples, with one row of the mask for each."""
        assert self._kept is not None, "nothing was added"
        return self._kept[1]

    def add(self, samples: Samples) -> None:
        """Give each sample a random priority; those with the highest are stored."""
        priority = torch.rand(len(samples.x), generator=self.generator, device=self.generator.device)
        # a copy, since the mask of the labels seen changes in place
        mask = None if samples.mask is None else samples.mask.expand(len(priority), -1).clone()
        samples = Samples(samples.x, samples.y, mask)
        if self._kept is not None:
            priority, samples = torch.cat([self._kept[0], priority]), _concatenate(self._kept[1], samples)
        if self.size is not None and len(priority) > self.size:
            priority, chosen = priority.topk(self.size)
            mask = None if samples.mask is None else samples.mask[chosen]
            samples = Samples(samples.x[chosen], samples.y[chosen], mask)
        self._kept = priority, samples


def _concatenate(a: Samples, b: Samples) -> Samples:
    mask = None if a.mask is None or b.mask is None else torch.cat([a.mask, b.mask])
    return Samples(torch.cat([a.x, b.x]), torch.cat([a.y, b.y]), mask)
