"""Whether a step would take a mean beyond what its weights can hold, known before the posterior has moved.

Finite expectations do not suffice: eta std^2 E[g] may overflow where E[g] does not, and a mean that float32 holds may
be infinite as a weight of float16. A bound from a few reductions tells most steps to be safe:

    |mean'| <= ||mean|| + min(max_move max(std), eta max(std)^2 scale ||sum of g||).

Where it does not, the step is tried on copies first.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bgd.optim.estimators.base import Expectations
from bgd.optim.update import Gaussian, Limits

_SAFE_MOVE = 1e9
"""A move of no more than so many stds, each at most 2^63, is lost in the rounding of float32's largest number."""
_LEAST = 1e-18
"""The square of a smaller number may vanish from a norm."""
_MOST = 1e15
"""A larger step size may overflow on the way to a move that is cut off."""


@torch.no_grad()
def may_overflow(
    params: Sequence[Tensor], posterior: Sequence[Gaussian], expectations: Expectations, limits: Sequence[Limits]
) -> bool:
    """Whether the bound leaves it open that a mean becomes NaN or infinite.

    >>> one = torch.ones(1)
    >>> found = Expectations([one], [one], None, [True])
    >>> [may_overflow([one], [Gaussian(one, one)], found, [Limits(lr)]) for lr in (1.0, 1e36, 1e39)]
    [False, False, True]
    """
    scale = abs(expectations.scale)
    rows = [
        i
        for i, (p, known) in enumerate(zip(params, expectations.has_gradient, strict=True))
        if known and p.numel() and not _is_safe(p, limits[i], scale)
    ]
    if not rows:
        return False
    norms = torch._foreach_norm([*(posterior[i].mean for i in rows), *(expectations.e_g[i] for i in rows)])
    values = [*norms, *(posterior[i].std.amax() for i in rows)]
    first = values[0].device
    found = torch.stack([value.to(first, torch.float32) for value in values]).view(3, -1).T.tolist()
    for i, (mean, g, std) in zip(rows, found, strict=True):
        limit, step = limits[i], scale * limits[i].weight * float(limits[i].lr)
        move = std * std * (g + _LEAST) * step
        if limit.max_move is not None and _LEAST < step < _MOST:
            move = min(move, limit.max_move * std)
        on_the_way = step * max(std, 1.0)
        if not (mean + move < torch.finfo(params[i].dtype).max * 0.99 and on_the_way < 1e37):
            return True
    return False


def _is_safe(p: Tensor, limit: Limits, scale: float) -> bool:
    """Whether the limit on a step's move alone rules out an overflow, at no cost."""
    limited = limit.max_move is not None and limit.max_move <= _SAFE_MOVE
    return (
        limited
        and p.dtype != torch.float16
        and isinstance(limit.lr, float)
        and _LEAST < limit.lr * limit.weight * scale < _MOST
    )


@torch.no_grad()
def overflown(params: Sequence[Tensor], posterior: Sequence[Gaussian]) -> list[int]:
    """The numbers of those whose mean or std is NaN or infinite, or whose weights would be.

    >>> half, large = torch.ones(1, dtype=torch.float16), torch.full((1,), 1e5)
    >>> overflown([half, large], [Gaussian(large, large)] * 2)
    [0]
    """
    return [
        i
        for i, (p, (mean, std)) in enumerate(zip(params, posterior, strict=True))
        if not bool(mean.to(p.dtype).isfinite().all() & std.isfinite().all())
    ]
