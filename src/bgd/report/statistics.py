r"""Mean, spread and agreement: every formula of the report is in this file.

A *spread* is a standard deviation over runs, with n - 1 in the denominator. Values carry no unit: the
report uses accuracies in percent, as the paper does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Summary:
    """What is known of one value measured in several runs.

    Attributes:
        mean: over the runs.
        spread: the standard deviation over the runs; None where it is unknown, as after a single run.
        n: how many runs.
    """

    mean: float
    spread: float | None
    n: int


class Verdict(StrEnum):
    """How our value compares with the paper's."""

    AGREES = "agrees"
    HIGHER = "higher"
    LOWER = "lower"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Difference:
    """One summary minus another.

    Attributes:
        value: the difference of the means.
        standard_error: of that difference; None where neither spread is known.
    """

    value: float
    standard_error: float | None


def summarise(values: Iterable[float]) -> Summary | None:
    r"""Mean and spread :math:`\sqrt{\frac{1}{n-1} \sum_i (x_i - \bar x)^2}`; None without values.

    Values that are not finite (a run that diverged) are counted, and make the mean NaN.

    >>> summarise([90.0, 92.0, 94.0])
    Summary(mean=92.0, spread=2.0, n=3)
    >>> summarise([90.0])
    Summary(mean=90.0, spread=None, n=1)
    """
    xs = [float(x) for x in values]
    n = len(xs)
    if not n:
        return None
    mean = math.fsum(xs) / n if all(map(math.isfinite, xs)) else math.nan
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in xs) / (n - 1)) if n > 1 else None
    return Summary(mean, spread, n)


def difference(a: Summary, b: Summary) -> Difference:
    r"""The difference a - b with its standard error :math:`\sqrt{s_a^2 / n_a + s_b^2 / n_b}`.

    Where one spread is unknown, as after a single run, the other is used for both: they measure the same thing.
    Spreads may differ (Welch).

    >>> difference(Summary(46.0, 3.0, 9), Summary(44.0, 4.0, 16))
    Difference(value=2.0, standard_error=1.4142135623730951)
    """
    variances = _variances(a, b)
    return Difference(a.mean - b.mean, None if variances is None else math.sqrt(sum(variances)))


def _variances(a: Summary, b: Summary) -> tuple[float, float] | None:
    """Of the two means; None where neither spread is known."""
    s_a = a.spread if a.spread is not None else b.spread
    s_b = b.spread if b.spread is not None else a.spread
    return None if s_a is None or s_b is None else (s_a**2 / a.n, s_b**2 / b.n)


def beyond_chance(a: Summary, b: Summary) -> bool:
    r"""Whether two means differ at the level of 5 %, by Welch's test: few seeds need a large difference.

    .. math:: |\bar x_a - \bar x_b| > t_{0.975, \nu} \sqrt{s_a^2 / n_a + s_b^2 / n_b}

    with the degrees of freedom :math:`\nu` of Welch and Satterthwaite. A spread that is unknown is that of the other.

    >>> beyond_chance(Summary(92.4, 1.3, 2), Summary(85.2, 3.6, 2)), beyond_chance(Summary(90, 1, 4), Summary(94, 1, 4))
    (False, True)
    """
    from scipy.special import stdtrit  # Student's quantiles

    variances, gap = _variances(a, b), abs(a.mean - b.mean)
    if variances is None or not any(variances):
        return variances is not None and gap != 0
    v_a, v_b = variances
    degrees = (v_a + v_b) ** 2 / (v_a**2 / max(a.n - 1, 1) + v_b**2 / max(b.n - 1, 1))
    return gap > float(stdtrit(degrees, 0.975)) * math.sqrt(v_a + v_b)


def verdict(ours: Summary | None, paper: Summary | None) -> Verdict:
    r"""Whether ours agrees with the paper's: within its spread, or within two standard errors of the difference.

    .. math:: |\bar x_o - \bar x_p| \le \max\Big(s_p,\; 2 \sqrt{s_o^2 / n_o + s_p^2 / n_p}\Big)

    Where one spread is unknown the other is used for both (see :func:`difference`); where both are, or a mean is
    not finite, the verdict is unknown.

    >>> paper = Summary(46.34, 2.36, 10)
    >>> str(verdict(Summary(44.10, 2.0, 10), paper))  # 2.24 below: within the paper's spread
    'agrees'
    >>> str(verdict(Summary(43.0, 2.0, 10), paper))  # 3.34 below: two standard errors are 1.96
    'lower'
    """
    if ours is None or paper is None:
        return Verdict.UNKNOWN
    gap = difference(ours, paper)
    if gap.standard_error is None or not math.isfinite(gap.value):
        return Verdict.UNKNOWN
    # a tolerance, so that rounding does not decide about a mean exactly at the edge
    allowed = max(paper.spread or 0.0, 2 * gap.standard_error) + 1e-9
    if abs(gap.value) <= allowed:
        return Verdict.AGREES
    return Verdict.HIGHER if gap.value > 0 else Verdict.LOWER


def binomial_interval(successes: int, n: int) -> tuple[float, float]:
    r"""The interval of Clopper and Pearson for a share: it holds the true one in at least 95 % of all cases.

    .. math:: \Big[B^{-1}_{0.025}(k, n - k + 1),\; B^{-1}_{0.975}(k + 1, n - k)\Big]

    with the quantiles of the Beta distribution; 0 and 1 at the ends, where these do not exist.

    >>> [round(bound, 3) for bound in binomial_interval(10, 20)]
    [0.272, 0.728]
    """
    from scipy.special import betaincinv

    low = float(betaincinv(successes, n - successes + 1, 0.025)) if successes else 0.0
    high = float(betaincinv(successes + 1, n - successes, 0.975)) if successes < n else 1.0
    return low, high
