"""The closed-form update of the posterior, as pure functions on tensors.

The posterior of a weight is Gaussian with ``mean`` and ``std``. One step sees the expectations, over
theta = mean + std * eps with eps ~ N(0, 1), of the gradient g of the *summed* loss of a batch:
``e_g`` = E[g] and ``e_g_eps`` = E[g eps].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from types import FunctionType
from typing import NamedTuple

import torch
from torch import Tensor

from bgd.optim.compilation import CompiledOrEager


class Gaussian(NamedTuple):
    """The posterior of the weights in one tensor."""

    mean: Tensor
    std: Tensor


class Limits(NamedTuple):
    """The step size of a tensor's mean, the floor and ceiling of its std, and how many stds its mean may move.

    ``weight`` is how many times each example counts: it multiplies both expectations.
    """

    lr: float | Tensor = 1.0
    std_min: float | Tensor | None = None
    std_max: float | Tensor | None = None
    max_move: float | None = None
    weight: float = 1.0


class FixedPoint(NamedTuple):
    """Where an iteration of the implicit equations ended, and whether it had converged there."""

    posterior: list[Gaussian]
    iterations: int
    converged: bool


Expected = tuple[Tensor | None, Tensor | None]
"""E[g] and E[g eps] of one tensor; None where it has no gradient."""


def std_bounds(dtype: torch.dtype) -> tuple[float, float]:
    """The widest range a std may have in ``dtype``: its square is neither denormal nor infinite.

    A denormal std would slow every operation that touches it several times over; an infinite one is the end
    of the posterior.

    >>> low, high = std_bounds(torch.float32)
    >>> low == 2.0**-62 and high == 2.0**63
    True
    """
    info = torch.finfo(dtype)
    # Powers of two, which every format holds exactly, one binary order inside the limits.
    return 2.0 ** (round(math.log2(info.tiny) / 2) + 1), 2.0 ** (round(math.log2(info.max) / 2) - 1)


def _at_least_single(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def update_mean(
    mean: Tensor, std: Tensor, e_g: Tensor, lr: float | Tensor = 1.0, max_move: float | None = None
) -> Tensor:
    """Move the mean: mean - eta std^2 E[g].

    Algorithm 1, first line; with eta = 1 it is the paper's equation for mu ("eq:mu implicit solution"). With
    ``max_move`` no mean moves by more than so many of its stds: mean - std clip(eta std E[g], -max_move, max_move).
    Computed in at least single precision and rounded once.

    >>> update_mean(torch.tensor(1.0), torch.tensor(0.5), torch.tensor(2.0))
    tensor(0.5000)
    >>> update_mean(torch.tensor(1.0), torch.tensor(0.5), torch.tensor(2.0), max_move=0.25)
    tensor(0.8750)
    """
    if (wide := _at_least_single(mean.dtype)) != mean.dtype:
        return update_mean(mean.to(wide), std.to(wide), e_g.to(wide), lr, max_move).to(mean.dtype)
    if max_move is None:
        return mean - lr * (std * std * e_g)
    moves = std * e_g  # in stds
    moves = (moves if isinstance(lr, float) and lr == 1.0 else moves.mul_(lr)).clamp_(-max_move, max_move)
    return torch.addcmul(mean, std, moves, value=-1)


def shrink_factor(y: Tensor) -> Tensor:
    """The factor exp(-asinh(y / 2)) = sqrt(1 + y^2 / 4) - y / 2 by which a std shrinks or grows, with y = std E[g eps].

    The right side cancels to exactly 0 in float32 where y is large. With y = p + n, p >= 0 >= n, of which one is 0,

        exp(-asinh(y / 2)) = (sqrt(4 + n^2) - n) / (sqrt(4 + p^2) + p)

    cancels nowhere, and takes a tenth of the time of asinh on a CPU. Where a square would overflow, y is cut off.

    >>> shrink_factor(torch.tensor([-1.0, 0.0, 1.0, 1e9]))
    tensor([1.6180e+00, 1.0000e+00, 6.1803e-01, 1.0000e-09])
    """
    largest, four = torch.finfo(y.dtype).max ** 0.5 / 2, y.new_full((), 4.0)
    positive, negative = y.clamp(0, largest), y.clamp(-largest, 0)
    grown = torch.addcmul(four, negative, negative).sqrt_().sub_(negative)
    return grown.div_(torch.addcmul(four, positive, positive).sqrt_().add_(positive))


def update_std(
    std: Tensor, e_g_eps: Tensor, std_min: float | Tensor | None = None, std_max: float | Tensor | None = None
) -> Tensor:
    """Shrink or grow the std: std exp(-asinh(std E[g eps] / 2)).

    Algorithm 1, second line ("eq:sigma implicit solution"), since for x = std E[g eps] / 2

        std sqrt(1 + x^2) - std x = std exp(-asinh(x)).

    The result is kept inside :func:`std_bounds`, and inside [``std_min``, ``std_max``] where these are given. Computed
    in at least single precision and rounded once.

    >>> update_std(torch.tensor(1.0), torch.tensor([-1.0, 0.0, 1.0]))
    tensor([1.6180, 1.0000, 0.6180])
    """
    wide = _at_least_single(std.dtype)
    precise = std.to(wide)
    return _shrunk(precise, precise * e_g_eps.to(wide), std_min, std_max, std_bounds(std.dtype)).to(std.dtype)


def _shrunk(
    std: Tensor,
    std_e_g_eps: Tensor,
    std_min: float | Tensor | None,
    std_max: float | Tensor | None,
    bounds: tuple[float, float],
) -> Tensor:
    """The next std from std E[g eps], inside its bounds."""
    low, high = bounds
    low = max(low, std_min) if isinstance(std_min, int | float) else low
    high = min(high, std_max) if isinstance(std_max, int | float) else high
    new = shrink_factor(std_e_g_eps).mul_(std).clamp_(low, high)
    if isinstance(std_min, Tensor):
        new = new.clamp(min=std_min)
    if isinstance(std_max, Tensor):
        new = new.clamp(max=std_max)
    return new


def update(posterior: Sequence[Gaussian], expected: Iterable[Expected], limits: Sequence[Limits]) -> Iterator[Gaussian]:
    """The posterior after one step, tensor by tensor: each can be used and freed before the next is made.

    A tensor without expectations keeps its posterior, bit for bit.

    >>> old = Gaussian(torch.zeros(1), torch.full((1,), 0.1))
    >>> [new] = update([old], [(torch.ones(1), torch.zeros(1))], [Limits()])
    >>> round(float(new.mean), 6), round(float(new.std), 6)
    (-0.01, 0.1)
    """
    for old, (e_g, e_g_eps), limit in zip(posterior, expected, limits, strict=True):
        if e_g is None or e_g_eps is None:
            yield old
        else:
            if limit.weight != 1.0:
                e_g, e_g_eps = limit.weight * e_g, limit.weight * e_g_eps
            yield Gaussian(
                update_mean(old.mean, old.std, e_g, limit.lr, limit.max_move),
                update_std(old.std, e_g_eps, limit.std_min, limit.std_max),
            )


def _update_sums(
    means: list[Tensor],
    stds: list[Tensor],
    e_g: list[Tensor],
    e_g_eps: list[Tensor],
    bounds: list[tuple[float | Tensor | None, float | Tensor | None, float | None]],
    lrs: list[Tensor],
    scales: list[Tensor],
    in_stds: bool,
) -> None:
    """:func:`update` in place on sums that are still to be scaled: compiled, it is one pass over memory."""
    for mean, std, g, g_eps, lr, scale, (low, high, max_move) in zip(
        means, stds, e_g, e_g_eps, lrs, scales, bounds, strict=True
    ):
        y = g_eps * scale if in_stds else std * (g_eps * scale)
        new_mean = update_mean(mean, std, g * scale, lr, max_move)
        std.copy_(_shrunk(std, y, low, high, std_bounds(std.dtype)))
        mean.copy_(new_mean)


@lru_cache(maxsize=64)
def compiled_update(kinds: tuple[tuple[torch.Size, torch.dtype], ...]) -> CompiledOrEager:
    """The update in place, compiled, for weights of these shapes and types.

    torch.compile keeps its graphs, of which it allows few, with the code object: each kind of network gets one of its
    own, or the ninth would run uncompiled, with other bits.

    >>> compiled_update(()) is compiled_update(())
    True
    """
    del kinds
    return CompiledOrEager(FunctionType(_update_sums.__code__.replace(), globals(), _update_sums.__name__))


def solve_implicit(
    prior: Sequence[Gaussian],
    expectations: Callable[[Sequence[Gaussian]], Iterable[Expected]],
    limits: Sequence[Limits] | None = None,
    iterations: int = 1000,
    tolerance: float = 1e-12,
    damping: float = 1.0,
) -> FixedPoint:
    """Iterate the paper's implicit equations to their fixed point: the optimal Gaussian of one online step.

    With m, v the prior's mean and std, the solution satisfies

        mean = m - v^2 E[g],        std = v exp(-asinh(v E[g eps] / 2)),

    where both expectations are taken under the *solution*. BGD's own step is one iteration from (m, v). Each
    iteration moves the fraction ``damping`` of the way, which a steep loss (v^2 times its curvature above 1) needs
    to converge. It stops when neither changes by more than ``tolerance`` relative to the prior's std. A prior in half
    precision is iterated in single precision, and the result rounded once.

    >>> def quadratic(posterior):  # L = 4 / 2 theta^2, so that E[g] = 4 mean and E[g eps] = 4 std
    ...     return [(4 * mean, 4 * std) for mean, std in posterior]
    >>> one = torch.ones((), dtype=torch.float64)
    >>> found = solve_implicit([Gaussian(one, one)], quadratic, damping=0.3)
    >>> found.converged, round(float(found.posterior[0].std ** -2), 6), round(float(found.posterior[0].mean), 6)
    (True, 5.0, 0.2)
    """
    limits = [Limits()] * len(prior) if limits is None else limits
    if any(t.dtype != _at_least_single(t.dtype) for gaussian in prior for t in gaussian):
        precise = [Gaussian(*(t.to(_at_least_single(t.dtype)) for t in gaussian)) for gaussian in prior]
        found = solve_implicit(precise, expectations, limits, iterations, tolerance, damping)
        return found._replace(posterior=[_rounded(*pair) for pair in zip(found.posterior, prior, strict=True)])
    posterior = list(prior)
    for iteration in range(1, iterations + 1):
        proposed = list(update(prior, expectations(posterior), limits))
        new = [Gaussian(*map(_towards(damping), old, goal)) for old, goal in zip(posterior, proposed, strict=True)]
        change = max(map(_relative_change, new, posterior, prior), default=0.0)
        posterior = new
        if change <= tolerance:
            return FixedPoint(posterior, iteration, True)
    return FixedPoint(posterior, iterations, False)


def _rounded(precise: Gaussian, like: Gaussian) -> Gaussian:
    """In the format of another, whose std its rounding cannot leave."""
    return Gaussian(precise.mean.to(like.mean.dtype), precise.std.clamp(*std_bounds(like.std.dtype)).to(like.std.dtype))


def _towards(damping: float) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda old, goal: torch.lerp(old, goal, damping)


def _relative_change(new: Gaussian, old: Gaussian, prior: Gaussian) -> float:
    """The largest change of a mean or std, in units of the prior's std."""
    changes = [((a - b).abs() / prior.std) for a, b in zip(new, old, strict=True)]
    return max(float(change.amax()) if change.numel() else 0.0 for change in changes)
