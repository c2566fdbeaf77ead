"""What a training loop does to gradients between ``backward()`` and ``step()``: unscaling, clipping, averaging."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

SAMPLE = 128
"""Elements of a gradient that are remembered."""


class GradientRecord:
    """A few elements of each gradient as a backward pass left them, to find by what factor they change afterwards.

    E[g] lies in ``p.grad``, where loops change it; E[g eps] lies elsewhere, and must follow: a loss scale that is taken
    out of one belongs out of the other, and clipping a gradient scales the loss of the batch. The factor of a parameter
    is the median over its elements, so that clipping by value counts where it touches most of them, and terms that are
    added to a gradient do not count at all.

    Args:
        params: whose gradients a backward pass has just computed.

    >>> p = torch.nn.Parameter(torch.ones(3))
    >>> p.grad = torch.tensor([1.0, 0.0, -4.0])
    >>> record = GradientRecord([p])
    >>> record.factors() is None
    True
    >>> _ = torch.nn.utils.clip_grad_norm_([p], 0.5)
    >>> round(record.factors()[0], 4) == round(0.5 / 17**0.5, 4)
    True
    """

    def __init__(self, params: Sequence[Tensor]) -> None:
        self._params = list(params)
        # copied: gradients change in place
        self._elements = [None if (e := _elements(p)) is None else e.clone() for p in params]

    def factors(self) -> list[float] | None:
        """For each parameter by what its gradient has been multiplied since; None where nothing was touched."""
        now = [_elements(p) for p in self._params]
        if all(_same(e, f) for e, f in zip(self._elements, now, strict=True)):
            return None
        ratios = [_ratios(e, f) for e, f in zip(self._elements, now, strict=True)]
        known = [ratio for ratio in ratios if ratio.numel()]
        rest = float(torch.cat(known).median()) if known else 1.0  # of those whose elements here are all 0
        return [float(ratio.median()) if ratio.numel() else rest for ratio in ratios]


def _same(before: Tensor | None, now: Tensor | None) -> bool:
    # not by the version of the gradient, which GradScaler leaves as it is
    return before is now if before is None or now is None else torch.equal(before, now)


def _elements(p: Tensor) -> Tensor | None:
    if p.grad is None or p.grad.is_sparse:
        return None
    flat = p.grad.detach().view(-1) if p.grad.is_contiguous() else p.grad.detach().flatten()
    return flat[:: len(flat) // SAMPLE | 1]


def _ratios(before: Tensor | None, now: Tensor | None) -> Tensor:
    if before is None or now is None:
        return torch.empty(0, dtype=torch.float64)
    ratios = now.double().cpu() / before.double().cpu()
    return ratios[ratios.isfinite() & (before.cpu() != 0)]
