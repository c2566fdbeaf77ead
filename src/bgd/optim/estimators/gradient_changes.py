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
        self._elements = _elements(params)

    def factors(self) -> list[float] | None:
        """For each parameter by what its gradient has been multiplied since; None where nothing was touched."""
        now = _elements(self._params)
        # not by the versions of the gradients, which GradScaler leaves as they are
        if _same(self._elements, now):
            return None
        before, after = _by_parameter(self._elements), _by_parameter(now)
        ratios = [_ratios(before.get(i), after.get(i)) for i in range(len(self._params))]
        known = [ratio for ratio in ratios if ratio.numel()]
        rest = float(torch.cat(known).median()) if known else 1.0  # of those whose elements here are all 0
        return [float(ratio.median()) if ratio.numel() else rest for ratio in ratios]


Elements = dict[tuple[torch.dtype, torch.device], tuple[list[int], Tensor, list[int]]]
"""By type and device: the numbers of the parameters, elements of their gradients in a row, and how many each has."""


def _same(before: Elements, now: Elements) -> bool:
    if before.keys() != now.keys():
        return False
    return all(before[kind][0] == now[kind][0] and torch.equal(before[kind][1], now[kind][1]) for kind in now)


@torch.no_grad()
def _elements(params: Sequence[Tensor]) -> Elements:
    """A copy of some elements, since gradients change in place."""
    found: dict[tuple[torch.dtype, torch.device], list[tuple[int, Tensor]]] = {}
    for i, p in enumerate(params):
        if (g := p.grad) is not None and not g.is_sparse:
            flat = g.view(-1) if g.is_contiguous() else g.flatten()
            found.setdefault((g.dtype, g.device), []).append((i, flat[:: g.numel() // SAMPLE | 1]))
    return {
        kind: ([i for i, _ in parts], torch.cat([part for _, part in parts]), [part.numel() for _, part in parts])
        for kind, parts in found.items()
    }


def _by_parameter(elements: Elements) -> dict[int, Tensor]:
    cut = ((rows, torch.split(flat, sizes)) for rows, flat, sizes in elements.values())
    return {i: part for rows, parts in cut for i, part in zip(rows, parts, strict=True)}


def _ratios(before: Tensor | None, now: Tensor | None) -> Tensor:
    if before is None or now is None:
        return torch.empty(0, dtype=torch.float64)
    ratios = now.double().cpu() / before.double().cpu()
    return ratios[ratios.isfinite() & (before.cpu() != 0)]
