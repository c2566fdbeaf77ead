"""A few samples of a task, kept for later."""

from __future__ import annotations

import torch
from torch import Tensor

from bgd.methods.curvature.task_curvature import Samples


class Reservoir:
    """A uniform sample of fixed size from batches that come one at a time, each seen once.

    Args:
        size: how many samples to keep; None for all.
        generator: of the draw.

    >>> kept = Reservoir(2, torch.Generator().manual_seed(0))
    >>> for i in range(4): kept.add(Samples(torch.full((3, 1), i), torch.zeros(3), None))
    >>> kept.samples.x.shape
    torch.Size([2, 1])
    """

    def __init__(self, size: int | None, generator: torch.Generator) -> None:
        self.size, self.generator = size, generator
        self._kept: tuple[Tensor, Samples] | None = None

    @property
    def samples(self) -> Samples:
        """What is kept, with one row of the mask for each sample."""
        assert self._kept is not None, "nothing was added"
        return self._kept[1]

    def add(self, samples: Samples) -> None:
        """Draw a number for each sample; those with the largest numbers stay."""
        ticket = torch.rand(len(samples.x), generator=self.generator, device=self.generator.device)
        # a copy: the mask of labels that were met is one that goes on changing
        mask = None if samples.mask is None else samples.mask.expand(len(ticket), -1).clone()
        samples = Samples(samples.x, samples.y, mask)
        if self._kept is not None:
            ticket, samples = torch.cat([self._kept[0], ticket]), _joined(self._kept[1], samples)
        if self.size is not None and len(ticket) > self.size:
            ticket, chosen = ticket.topk(self.size)
            mask = None if samples.mask is None else samples.mask[chosen]
            samples = Samples(samples.x[chosen], samples.y[chosen], mask)
        self._kept = ticket, samples


def _joined(a: Samples, b: Samples) -> Samples:
    mask = None if a.mask is None or b.mask is None else torch.cat([a.mask, b.mask])
    return Samples(torch.cat([a.x, b.x]), torch.cat([a.y, b.y]), mask)
