"""Sufficient statistics: what a linear head needs to know of its data, as plain sums.

    G = sum phi phi^T       B = sum phi y^T       q = sum y^2       n = sum of weights

They add up, so data learnt in any order, in shards or on other machines gives the same sums, and examples are forgotten
by subtraction. Learning costs D^2 an example and nothing is solved until a prediction is needed: the form for thousands
of features, where :mod:`bgd.exact.head` keeps the inverse up to date for hundreds. :func:`solve` gives the posterior.

The products of a batch may be float32, in which an example costs half the time; the sums are float64 in any case, so
their relative error stays that of one product, about 6e-8, however long the stream. It acts as noise on G of at most
1e-7 x its largest eigenvalue: a ridge above that is safe, and :func:`solve` says so where it is too small. Features
that are bfloat16 numbers lose no more in :func:`bgd.exact.precision.products`, which may take half the time.

>>> x, y = torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[1.0], [3.0]])
>>> sums = add(empty(2, 1), x, y)
>>> solve(sums, ridge=1e-9).mean.round(decimals=6).tolist()  # y = 1 + 2 x
[[1.0], [2.0]]
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from bgd.exact.head import ExactError
from bgd.exact.precision import products

PANEL = 1024
"""Rows of G computed at a time: above the diagonal nothing is, which saves nearly half of the products."""


class Statistics(NamedTuple):
    """The sums, float64. Of ``gram`` only the lower triangle counts.

    >>> empty(3, 2).cross.shape
    torch.Size([3, 2])
    """

    gram: Tensor
    """G, (D, D), lower triangle."""
    cross: Tensor
    """B, (D, K)."""
    square: Tensor
    """q, (K,)."""
    examples: Tensor
    """n, a scalar."""


class Posterior(NamedTuple):
    """W and the factor of its precision: L = G + ridge I = C C^T.

    >>> solve(empty(1, 1), ridge=4.0).factor
    tensor([[2.]], dtype=torch.float64)
    """

    mean: Tensor
    """W = L^-1 B, (D, K)."""
    factor: Tensor
    """C, lower triangular, (D, D)."""
    residual: Tensor
    """q - W^T L W of each output, (K,)."""
    examples: Tensor
    """n, a scalar."""

    def variance(self, phi: Tensor) -> Tensor:
        """The epistemic variance phi^T L^-1 phi = |C^-1 phi|^2 of each row, (B,), in units of the noise variance.

        >>> solve(empty(1, 1), ridge=4.0).variance(torch.ones(1, 1))
        tensor([0.2500], dtype=torch.float64)
        """
        half = torch.linalg.solve_triangular(self.factor, phi.to(self.factor.dtype).T, upper=False)
        variance: Tensor = half.square().sum(0)
        return variance

    def noise_variance(self) -> Tensor:
        """The mean squared error that is left, (K,): residual / n, or 1 before any data.

        >>> solve(empty(1, 1)).noise_variance()
        tensor([1.], dtype=torch.float64)
        """
        return self.residual.clamp_min(0) / self.examples if self.examples > 0 else torch.ones_like(self.residual)

    def log_evidence(self, ridge: float) -> Tensor:
        """The log density of all targets of each output under the prior, (K,): choose the ridge by its sum.

        log N(Y; 0, s^2 (I + X X^T / ridge)) = -n/2 (log(2 pi s^2) + 1) - log det L / 2 + D/2 log ridge, at the best s.

        >>> sums = add(empty(1, 1), torch.ones(2, 1), torch.tensor([[1.0], [0.0]]))
        >>> round(float(solve(sums, 1.0).log_evidence(1.0)), 4)  # N(y; 0, I / 3 + 1 / 3), s^2 = 1 / 3
        -2.2886
        """
        log_det = 2 * self.factor.diagonal().log().sum()
        fit = self.examples * ((2 * math.pi * self.noise_variance()).log() + 1)
        return (len(self.factor) * math.log(ridge) - log_det - fit) / 2


def empty(dim: int, outputs: int, device: torch.device | str = "cpu") -> Statistics:
    """Of no data.

    >>> float(empty(2, 1).examples)
    0.0
    """
    shapes = ((dim, dim), (dim, outputs), (outputs,), ())
    return Statistics(*(torch.zeros(shape, dtype=torch.float64, device=device) for shape in shapes))


def add_(sums: Statistics, phi: Tensor, targets: Tensor, weights: Tensor | None = None) -> Statistics:
    """Add a batch to the sums in place, with products in the precision of ``phi``; returns ``sums``.

    Args:
        sums: changed in place.
        phi: features (B, D), float32, float64 or bfloat16.
        targets: (B, K).
        weights: of the examples, (B,); a weight of -1 forgets one.

    Raises:
        ExactError: where shapes do not fit or a number is not finite: nothing has been added.

    >>> sums = add_(empty(1, 1), torch.full((2, 1), 3.0), torch.ones(2, 1))
    >>> float(sums.gram), float(sums.cross)
    (18.0, 6.0)
    """
    _check(sums, phi, targets)
    rounded = torch.bfloat16 if phi.dtype == torch.bfloat16 and weights is None else torch.float32
    phi = phi.float() if phi.dtype == torch.bfloat16 else phi
    targets = targets.to(phi.dtype)
    left, weighted = (phi, targets) if weights is None else (phi * weights[:, None], targets * weights[:, None])
    for start in range(0, phi.shape[1], PANEL):
        stop = start + PANEL
        with products(rounded):
            panel = left[:, start:stop].T @ phi[:, :stop]
        sums.gram[start:stop, :stop].add_(panel)
    sums.cross.add_(left.T @ targets)
    sums.square.add_((weighted * targets).sum(0))
    sums.examples.add_(len(phi) if weights is None else weights.sum())
    return sums


def add(sums: Statistics, phi: Tensor, targets: Tensor, weights: Tensor | None = None) -> Statistics:
    """:func:`add_` to a copy.

    >>> sums = empty(1, 1)
    >>> float(add(sums, torch.ones(2, 1), torch.ones(2, 1)).examples), float(sums.examples)
    (2.0, 0.0)
    """
    return add_(copy(sums), phi, targets, weights)


def forget(sums: Statistics, phi: Tensor, targets: Tensor) -> Statistics:
    """The sums without these examples, which must be among those added.

    >>> x, y = torch.ones(2, 1), torch.ones(2, 1)
    >>> float(forget(add(empty(1, 1), x, y), x, y).gram)
    0.0
    """
    return add(sums, phi, targets, weights=-phi.new_ones(len(phi)))


def merge(one: Statistics, other: Statistics) -> Statistics:
    """The sums over the data of both.

    >>> x, y = torch.ones(2, 1), torch.ones(2, 1)
    >>> float(merge(add(empty(1, 1), x, y), add(empty(1, 1), x, y)).examples)
    4.0
    """
    if one.cross.shape != other.cross.shape:
        raise ExactError(
            f"statistics of shapes {tuple(one.cross.shape)} and {tuple(other.cross.shape)} cannot merge: both need the "
            "same features and outputs"
        )
    return Statistics(*(a + b for a, b in zip(one, other, strict=True)))


def discount_(sums: Statistics, gamma: float) -> Statistics:
    """All data counts gamma times as much; the prior, which :func:`solve` adds, stays. In place, exact, O(D^2).

    >>> float(discount_(add(empty(1, 1), torch.ones(1, 1), torch.ones(1, 1)), 0.5).gram)
    0.5
    """
    if not 0 < gamma <= 1:
        raise ExactError(f"gamma={gamma}: a discount lies in (0, 1]; 1 forgets nothing")
    for part in sums:
        part.mul_(gamma)
    return sums


def copy(sums: Statistics) -> Statistics:
    """In memory of its own.

    >>> copy(empty(1, 1)).gram
    tensor([[0.]], dtype=torch.float64)
    """
    return Statistics(*(part.clone() for part in sums))


def add_outputs(sums: Statistics, extra: int) -> Statistics:
    """Outputs that appear later, such as new classes: zero columns, as if their targets had been 0 from the start.

    >>> add_outputs(empty(3, 2), 1).cross.shape
    torch.Size([3, 3])
    """
    cross = torch.cat([sums.cross, sums.cross.new_zeros(len(sums.cross), extra)], dim=1)
    return sums._replace(cross=cross, square=torch.cat([sums.square, sums.square.new_zeros(extra)]))


def solve(sums: Statistics, ridge: float = 1.0) -> Posterior:
    """The posterior under the prior W ~ N(0, s^2 / ridge): one Cholesky factorisation, D^3 / 3.

    Raises:
        ExactError: where G + ridge I is not positive definite in floating point.

    >>> float(solve(add(empty(1, 1), torch.ones(3, 1), torch.ones(3, 1)), ridge=1.0).mean)
    0.75
    """
    if not ridge > 0:
        raise ExactError(f"ridge={ridge}: the prior needs a precision above 0; use a small one, as 1e-6")
    precision = sums.gram.clone()
    precision.diagonal().add_(ridge)
    factor, failed = torch.linalg.cholesky_ex(precision)
    if failed:
        largest = float(sums.gram.diagonal().max())
        raise ExactError(
            f"ridge={ridge} is too small for these features, whose largest sum of squares is {largest:.3g}: use at "
            f"least {1e-6 * largest:.1g}, or features in float64"
        )
    mean = torch.cholesky_solve(sums.cross, factor)
    return Posterior(mean, factor, sums.square - (mean * sums.cross).sum(0), sums.examples.clone())


def _check(sums: Statistics, phi: Tensor, targets: Tensor) -> None:
    dim, outputs = sums.cross.shape
    if phi.ndim != 2 or phi.shape[1] != dim or targets.shape != (len(phi), outputs):
        raise ExactError(
            f"features of shape {tuple(phi.shape)} and targets of shape {tuple(targets.shape)} do not fit statistics "
            f"of {dim} features and {outputs} outputs: (B, {dim}) and (B, {outputs}) are needed"
        )
    for name, values in (("features", phi), ("targets", targets)):
        # a NaN or infinity anywhere makes the sum one as well
        if not torch.isfinite(values.sum(dtype=torch.float64)):
            raise ExactError(f"{name} contain NaN or infinity: replace or drop those examples")
