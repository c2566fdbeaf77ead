"""Sums over sampled networks, from which the expectations of a step are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class GradientSums:
    """Sums of g and g eps over the samples of a step.

    Attributes:
        params: the parameters of the step.
        e_g: sum of g, one tensor per parameter.
        e_g_eps: sum of g eps.
        count: samples added.
        losses: of the samples, where known.
        has_gradient: whether any sample had a gradient for the parameter.
        examples: in the batch; 0 where it is not known.
    """

    params: list[Tensor]
    e_g: list[Tensor]
    e_g_eps: list[Tensor]
    count: int = 0
    losses: list[Tensor] = field(default_factory=list)
    has_gradient: list[bool] = field(default_factory=list)
    examples: int = 0

    def add(self, eps: Sequence[Tensor], loss: Tensor | float | None) -> None:
        """Add the gradients of one sampled network, and its loss where it is known."""
        if not self.has_gradient:
            self.has_gradient = [False] * len(self.params)
        known = [i for i, p in enumerate(self.params) if p.grad is not None]
        gradients = [g.to(self.e_g[i].dtype) for i in known if (g := self.params[i].grad) is not None]
        if any(g.is_sparse for g in gradients):
            raise RuntimeError("sparse gradients are not supported: use sparse=False in the embedding")
        if known:
            torch._foreach_add_([self.e_g[i] for i in known], gradients)
            torch._foreach_addcmul_([self.e_g_eps[i] for i in known], gradients, [eps[i] for i in known])
        for i in known:
            self.has_gradient[i] = True
        if loss is not None:
            value = torch.as_tensor(loss).detach()
            self.losses.append(value if value.is_floating_point() else value.float())
        self.count += 1

    def clear(self) -> None:
        """Start again from zero."""
        torch._foreach_zero_([*self.e_g, *self.e_g_eps])
        self.count, self.losses, self.has_gradient, self.examples = 0, [], [], 0

    def mean_loss(self) -> Tensor | None:
        """Over the sampled networks; None where no loss is known."""
        return torch.stack([loss.to(self.losses[0]) for loss in self.losses]).mean() if self.losses else None


class GradientSumBuffers:
    """Memory for the sums, the same at every step.

    >>> buffers = GradientSumBuffers()
    >>> e_g, e_g_eps = buffers.zeros([torch.ones(2)])
    >>> buffers.zeros([torch.ones(2)])[0] is e_g
    True
    """

    def __init__(self) -> None:
        self._sums: tuple[list[Tensor], list[Tensor]] = ([], [])

    def zeros(self, like: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Two lists of zeros, each of the given shapes, types and devices; valid until the next call."""
        if [(t.shape, t.dtype, t.device) for t in like] != [(t.shape, t.dtype, t.device) for t in self._sums[0]]:
            self._sums = [torch.empty_like(t) for t in like], [torch.empty_like(t) for t in like]
        for sums in self._sums:
            torch._foreach_zero_(sums)
        return self._sums
