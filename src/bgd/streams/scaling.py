"""Running standardisation of columns: z = (x - mean) / std, which grows as a logarithm beyond 3, and up to 6.

Mean and variance are running ones over the last ``WINDOW`` examples (all, while there are fewer). A value further than
``WILD`` stds from the mean counts as one so far, which keeps heavy tails from hiding all other values; a lasting change
of scale is followed nevertheless. A missing value (NaN) is not counted, and z = 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.floating[Any]]

WINDOW = 10_000.0
WILD = 8.0
TRUSTED = 30.0
"""Examples after which a std is trusted enough to call a value wild."""
BOUND = 3.0


class Scaling(NamedTuple):
    """Running statistics of each column.

    >>> empty(2).mean.tolist()
    [0.0, 0.0]
    """

    seen: Array
    mean: Array
    variance: Array


def empty(columns: int) -> Scaling:
    """Nothing seen yet."""
    return Scaling(*(np.zeros(columns) for _ in range(3)))


def widen(scaling: Scaling, columns: int) -> Scaling:
    """More columns, unseen so far.

    >>> widen(empty(1), 3).seen.shape
    (3,)
    """
    return Scaling(*(np.concatenate([part, np.zeros(columns - len(part))]) for part in scaling))


def observe(scaling: Scaling, x: Array) -> Scaling:
    """The statistics with a batch (B, columns) more; NaN is missing.

    >>> observe(empty(1), np.array([[1.0], [3.0], [np.nan]]))
    Scaling(seen=array([2.]), mean=array([2.]), variance=array([1.]))
    """
    count, mean, variance = scaling
    missing = np.isnan(x)
    with np.errstate(over="ignore", invalid="ignore"):
        limit = WILD * np.sqrt(variance)
        limit[(count < TRUSTED) | (variance <= 0)] = np.inf
        away = x - mean
        away[missing] = 0.0
        np.maximum(np.minimum(away, limit, out=away), -limit, out=away)
        fresh = len(x) - missing.sum(0)
        total = np.maximum(count + fresh, 1.0)
        shift = away.sum(0) / total
        squares = (count * variance + np.square(away).sum(0)) / total - np.square(shift)
    return Scaling(np.minimum(count + fresh, WINDOW), mean + shift, np.maximum(squares, 0.0))


def standardise(scaling: Scaling, x: Array) -> Array:
    """Z of a batch.

    >>> standardise(Scaling(np.full(1, 9.0), np.full(1, 5.0), np.full(1, 4.0)), np.array([[5.0], [1e9], [np.nan]]))
    array([[0.],
           [6.],
           [0.]])
    """
    std = np.sqrt(scaling.variance)
    usable = std > 1e-9 * np.abs(scaling.mean)
    std[~usable] = 1.0
    z: Array = (x - scaling.mean) / std
    z[np.isnan(z)] = 0.0
    z[:, ~usable] = 0.0
    size = np.abs(z)
    if not (size > BOUND).any():
        return z
    beyond = np.maximum(size - BOUND, 0.0)
    result: Array = np.copysign(np.minimum(size, BOUND) + np.minimum(np.log1p(beyond), BOUND), z)
    return result
