"""The sums over sampled networks from which a step is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class GradientSums:
    """The sums over the samples of a step that is under way."""

    params: list[Tensor]
    e_g: list[Tensor] = field(default_factory=list)
    e_g_eps: list[Tensor] = field(default_factory=list)
    untouched: set[Tensor] = field(default_factory=set)
    count: int = 0
    losses: list[Tensor] = field(default_factory=list)
    eps: list[Tensor] | None = None
    scale: float = 1.0
    """What turns the sums over samples into expectations of the summed loss."""

    def add(self, eps: Sequence[Tensor], loss: Tensor | float | None) -> None:
        """Count in the gradients of one sampled network, and its loss where it is known."""
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if p.grad.is_sparse:
                raise RuntimeError("sparse gradients are not supported: use sparse=False in the embedding")
            g = p.grad.to(self.e_g[i].dtype)
            self.e_g[i].add_(g)
            self.e_g_eps[i].addcmul_(g, eps[i])
            self.untouched.discard(p)
        if loss is not None:
            value = torch.as_tensor(loss).detach()
            self.losses.append(value if value.is_floating_point() else value.float())
        self.count += 1

    def nonfinite(self) -> list[Tensor]:
        """The parameters whose expectations are NaN, infinite, or would overflow when scaled."""
        sums = self.e_g + self.e_g_eps
        if self._finite([s.sum() for s in sums]).all():
            return []
        # A sum may overflow where its terms do not: look closer.
        fine = self._finite([s.abs().amax() if s.numel() else s.sum() for s in sums]).view(2, -1).all(0)
        return [p for p, ok in zip(self.params, fine.tolist(), strict=True) if not ok]

    def _finite(self, values: list[Tensor]) -> Tensor:
        # scaled in their own type, in which they may overflow
        return torch.stack([(value * self.scale).cpu().double() for value in values]).isfinite()

    def mean_loss(self) -> Tensor | None:
        """Over the sampled networks; None where no loss is known."""
        return torch.stack([loss.to(self.losses[0]) for loss in self.losses]).mean() if self.losses else None


class GradientSumBuffers:
    """Room for E[g] and E[g eps], the same at every step.

    >>> memory = GradientSumBuffers()
    >>> e_g, e_g_eps = memory.zeros([torch.ones(2)])
    >>> memory.zeros([torch.ones(2)])[0] is e_g
    True
    """

    def __init__(self) -> None:
        self._sums: tuple[list[Tensor], list[Tensor]] = ([], [])

    def zeros(self, like: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Two lists of zeros, each of the given shapes, types and devices; good until the next call."""
        if [(t.shape, t.dtype, t.device) for t in like] != [(t.shape, t.dtype, t.device) for t in self._sums[0]]:
            self._sums = [torch.empty_like(t) for t in like], [torch.empty_like(t) for t in like]
        for sums in self._sums:
            torch._foreach_zero_(sums)
        return self._sums
