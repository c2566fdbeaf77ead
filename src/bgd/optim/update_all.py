"""The update rules on all weights of a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import FunctionType

import torch
from torch import Tensor

from bgd.optim import update as rules
from bgd.optim.compilation import CompiledOrEager

Bounds = tuple[float | Tensor | None, float | Tensor | None]
"""Floor and ceiling of a std."""


def move(
    means: list[Tensor],
    stds: list[Tensor],
    e_g: list[Tensor],
    e_g_eps: list[Tensor],
    bounds: list[Bounds],
    lrs: Sequence[float | Tensor],
) -> Iterator[Tensor]:
    """The rules on many tensors: mean, std, mean, std, ... Each can be used and freed before the next is made.

    >>> mean, std, gradient = torch.zeros(1), torch.full((1,), 0.1), torch.ones(1)
    >>> new_mean, new_std = move([mean], [std], [gradient], [torch.zeros(1)], [(None, None)], [1.0])
    >>> round(float(new_mean), 6), round(float(new_std), 6)
    (-0.01, 0.1)
    """
    for mean, std, g, g_eps, (low, high), lr in zip(means, stds, e_g, e_g_eps, bounds, lrs, strict=True):
        yield rules.update_mean(mean, std, g, lr)
        yield rules.update_std(std, g_eps, low, high)


def _move_all(
    means: list[Tensor],
    stds: list[Tensor],
    e_g: list[Tensor],
    e_g_eps: list[Tensor],
    bounds: list[Bounds],
    lrs: list[Tensor],
    scale: Tensor,
) -> None:
    """The same in place, on sums that are still to be scaled: compiled, it is one pass over memory."""
    new = list(move(means, stds, [g * scale for g in e_g], [g * scale for g in e_g_eps], bounds, lrs))
    for old, value in zip((t for pair in zip(means, stds, strict=True) for t in pair), new, strict=True):
        old.copy_(value)


@lru_cache(maxsize=64)
def move_in_place(kinds: tuple[tuple[torch.Size, torch.dtype], ...]) -> CompiledOrEager:
    """Writes the posterior after a step over the one before it, for weights of these shapes and types.

    torch.compile keeps its graphs, of which it allows few, with the code object: each kind of network gets one of its
    own, or the ninth would run uncompiled, with other bits.

    >>> move_in_place(()) is move_in_place(())
    True
    """
    del kinds
    return CompiledOrEager(FunctionType(_move_all.__code__.replace(), globals(), _move_all.__name__))
