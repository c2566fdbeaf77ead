"""The closed-form updates of the paper, as pure functions on tensors.

The posterior of a weight is Gaussian with ``mean`` and ``std``. One step sees the expectations, over
theta = mean + std * eps with eps ~ N(0, 1), of the gradient g of the *summed* loss of a batch:
``e_g`` = E[g] and ``e_g_eps`` = E[g eps].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Expectations = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""From (mean, std) to (E[g], E[g eps])."""


class FixedPoint(NamedTuple):
    """Where an iteration of the implicit equations ended, and whether it had converged there."""

    mean: Tensor
    std: Tensor
    iterations: int
    converged: bool


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


def update_mean(mean: Tensor, std: Tensor, e_g: Tensor, lr: float | Tensor = 1.0) -> Tensor:
    """Move the mean: mean - eta std^2 E[g].

    Algorithm 1, first line; with eta = 1 it is the paper's equation for mu ("eq:mu implicit solution").

    >>> update_mean(torch.tensor(1.0), torch.tensor(0.5), torch.tensor(2.0))
    tensor(0.5000)
    """
    return mean - lr * (std * std * e_g)


def update_std(
    std: Tensor, e_g_eps: Tensor, std_min: float | Tensor | None = None, std_max: float | Tensor | None = None
) -> Tensor:
    """Shrink or grow the std: std exp(-asinh(std E[g eps] / 2)).

    Algorithm 1, second line ("eq:sigma implicit solution"), since for x = std E[g eps] / 2

        std sqrt(1 + x^2) - std x = std exp(-asinh(x)).

    The left side cancels to exactly 0 in float32 where x is large; the right side stays positive. The result is
    kept inside :func:`std_bounds`, and inside [``std_min``, ``std_max``] where these are given.

    >>> update_std(torch.tensor(1.0), torch.tensor([-1.0, 0.0, 1.0]))
    tensor([1.6180, 1.0000, 0.6180])
    """
    low, high = std_bounds(std.dtype)
    new = (std * torch.exp(-torch.asinh(0.5 * std * e_g_eps))).clamp(low, high)
    if std_min is not None:
        new = new.clamp(min=std_min)
    if std_max is not None:
        new = new.clamp(max=std_max)
    return new


def solve_implicit(
    prior_mean: Tensor,
    prior_std: Tensor,
    expectations: Expectations,
    iterations: int = 1000,
    tolerance: float = 1e-12,
    damping: float = 1.0,
) -> FixedPoint:
    """Iterate the paper's implicit equations to their fixed point: the optimal Gaussian of one online step.

    With m, v the prior's mean and std, the solution satisfies

        mean = m - v^2 E[g],        std = v exp(-asinh(v E[g eps] / 2)),

    where both expectations are taken under the *solution*. BGD's own step is one iteration from (m, v). Each
    iteration moves the fraction ``damping`` of the way, which a steep loss (v^2 times its curvature above 1) needs
    to converge. It stops when neither changes by more than ``tolerance`` relative to the prior's std.

    >>> def quadratic(mean, std):  # L = 4 / 2 theta^2, so that E[g] = 4 mean and E[g eps] = 4 std
    ...     return 4 * mean, 4 * std
    >>> one = torch.ones((), dtype=torch.float64)
    >>> found = solve_implicit(one, one, quadratic, damping=0.3)
    >>> found.converged, round(float(found.std**-2), 6), round(float(found.mean), 6)
    (True, 5.0, 0.2)
    """
    mean, std = prior_mean, prior_std
    for iteration in range(1, iterations + 1):
        e_g, e_g_eps = expectations(mean, std)
        new_mean = torch.lerp(mean, update_mean(prior_mean, prior_std, e_g), damping)
        new_std = torch.lerp(std, update_std(prior_std, e_g_eps), damping)
        change = torch.maximum((new_mean - mean).abs() / prior_std, (new_std - std).abs() / prior_std).amax()
        mean, std = new_mean, new_std
        if change <= tolerance:
            return FixedPoint(mean, std, iteration, True)
    return FixedPoint(mean, std, iterations, False)
