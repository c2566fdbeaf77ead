"""Which tasks a continuous stream samples from at each iteration: the paper's figure of task proportions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bgd.scenarios.errors import ScenarioError


def corners(iterations: int, tasks: int, beta: float) -> NDArray[np.int64]:
    r"""Where each task's weight starts to rise, reaches 1, starts to fall and ends: (T, 4), each rounded down.

    .. math:: s_k = \max\left(\tfrac{(\beta k - 1) N}{\beta T}, 0\right), \;
        p_k = \tfrac{(\beta k + 1) N}{\beta T}, \;
        q_k = \tfrac{(\beta k + \beta - 1) N}{\beta T}, \;
        e_k = \min\left(\tfrac{(\beta k + \beta + 1) N}{\beta T}, N\right)

    The first task has no rise and the last no fall. With :math:`\beta \le 1` tasks switch hard, every N / T.

    >>> corners(iterations=80, tasks=2, beta=4).tolist()
    [[0, 0, 30, 50], [30, 50, 80, 80]]
    >>> corners(iterations=80, tasks=2, beta=1).tolist()
    [[0, 0, 40, 40], [40, 40, 80, 80]]
    """
    if tasks < 1:
        raise ScenarioError(f"T={tasks} tasks is out of range: give at least one")
    if iterations < tasks:
        raise ScenarioError(f"N={iterations} iterations are too few for {tasks} tasks: give at least one each")
    if not (beta > 0 and math.isfinite(beta)):
        raise ScenarioError(
            f"beta={beta} is out of range: give a number above 0 (4 in the paper; up to 1 for hard switches)"
        )
    # exact fractions: the fall of a task and the rise of the next must meet on the same iteration
    b, n = Fraction(beta), Fraction(iterations, tasks)
    if b <= 1:
        begins = [math.floor(k * n) for k in range(tasks)]
        fades = [(begin, begin) for begin in begins[1:]]
    else:
        fades = [(math.floor((k - 1 / b) * n), math.floor((k + 1 / b) * n)) for k in range(1, tasks)]
    rises, falls = [(0, 0), *fades], [*fades, (iterations, iterations)]
    table = np.array([(*rise, *fall) for rise, fall in zip(rises, falls, strict=True)], dtype=np.int64)
    return np.clip(table, 0, iterations)


def proportions(iteration: ArrayLike, corners: NDArray[np.int64]) -> NDArray[np.float64]:
    """The distribution over tasks at the given iterations, (n, T): trapezoids that add up to 1.

    A fade over L iterations runs through 0, 1/(L-1), ..., 1, so that what one task loses the next one gains, and
    every task gets N / T expected iterations. For beta below 2, where a task falls before it has risen, its weight
    is the lesser of both, and the first and last two tasks get a little more or less than that.

    >>> proportions([0, 39, 79], corners(iterations=80, tasks=2, beta=4)).round(3).tolist()
    [[1.0, 0.0], [0.526, 0.474], [0.0, 1.0]]
    """
    i = np.atleast_1d(np.asarray(iteration))[:, None]
    start, full, fading, end = corners.T
    rise = np.where(i < full, np.clip((i - start) / np.maximum(full - start - 1, 1), 0, 1), 1.0)
    fall = np.where(i < fading, 1.0, 1 - np.clip((i - fading) / np.maximum(end - fading - 1, 1), 0, 1))
    weight = np.where((i >= start) & (i < end), np.minimum(rise, fall), 0.0)
    total = weight.sum(axis=1, keepdims=True)
    return np.asarray(weight / total)
