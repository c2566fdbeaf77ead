"""Feature maps of encoded rows: functions of (seed, column), so that a new column adds features and changes none.

Every map has a constant 1 and the row itself over sqrt(scale): a linear model. Fourier maps add cos(Omega z) and
sin(Omega z), over sqrt(frequencies): for the kernel exp(-|z - z'|^2 / (2 l^2 scale)) (Rahimi and Recht), or, sparse,
one that sees few columns at a time, with a heavy tail of frequencies, and so finds steps and interactions among many
columns that do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.floating[Any]]

TOGETHER = np.array([0.4, 0.4, 0.2])
"""How often a sparse frequency sees one, two and three columns."""


@dataclass(frozen=True)
class FeatureMap:
    """A feature map; a linear one has no frequencies.

    >>> FeatureMap("dense", 1).apply(np.zeros((1, 1)), np.ones((1, 1)), 1).tolist()
    [[1.0, 1.0, 0.0, 0.0]]
    """

    kind: Literal["linear", "dense", "sparse"]
    frequencies: int = 0
    length: float = 1.0
    widest: int = 64
    """Columns beyond this number share the linear features of those before, with random signs."""

    def draw(self, columns: int, scale: int, seed: int) -> Array:
        """Omega, (columns, frequencies); row j depends on the seed, the scale and j alone.

        >>> few, more = (FeatureMap("sparse", 4).draw(columns, 2, seed=0) for columns in (2, 3))
        >>> bool(np.all(few == more[:2]))
        True
        """
        normal = np.empty((columns, self.frequencies))
        chance = np.empty((columns, self.frequencies))
        for j in range(columns):
            rng = np.random.default_rng([seed, self.frequencies, j])
            normal[j], chance[j] = rng.standard_normal(self.frequencies), rng.random(self.frequencies)
        if self.kind == "dense":
            omega: Array = normal / (self.length * np.sqrt(scale))
            return omega
        return self._sparse(normal, chance, scale, np.random.default_rng([seed, self.frequencies]))

    def _sparse(self, normal: Array, chance: Array, scale: int, rng: np.random.Generator) -> Array:
        """One to three of the first columns to a frequency; of later columns j, about so many in j."""
        together = rng.choice([1, 2, 3], self.frequencies, p=TOGETHER)
        heavy = np.sqrt(rng.chisquare(3, self.frequencies) / 3)
        ranks = rng.random((self.frequencies, scale)).argsort(1).argsort(1).T
        later = np.arange(scale, len(normal))[:, None]
        seen = np.concatenate([ranks < together, chance[scale:] < together / (later + 1)])[: len(normal)]
        omega: Array = np.where(seen, normal / (self.length * heavy), 0.0)
        return omega

    def apply(self, rows: Array, omega: Array, scale: int) -> Array:
        """The features (B, D) of rows (B, columns)."""
        return apply((self,), rows, omega, scale)[0]


def apply(maps: Sequence[FeatureMap], rows: Array, omegas: Array, scale: int) -> list[Array]:
    """The features (B, D) of each map, whose Omegas stand side by side; sines of all at once, in single precision.

    >>> [x.shape for x in apply([FeatureMap("linear"), FeatureMap("dense", 2)], np.ones((3, 1)), np.ones((1, 2)), 1)]
    [(3, 2), (3, 6)]
    """
    angles = (rows @ omegas).astype(np.float32)
    cosines, sines = np.cos(angles), np.sin(angles)
    ones, scaled, at, result = np.ones((len(rows), 1)), rows / math.sqrt(scale), 0, []
    for one in maps:
        parts = [ones, _narrow(scaled, one.widest)]
        if one.frequencies:
            own = slice(at, at := at + one.frequencies)
            size = np.float32(1.0 / math.sqrt(one.frequencies))
            # the Fourier features come first: new columns append to the linear ones
            parts[1:1] = [size * cosines[:, own], size * sines[:, own]]
        result.append(np.concatenate(parts, 1))
    return result


def _narrow(rows: Array, widest: int) -> Array:
    """At most ``widest`` columns: each further column is added to one before it, with a sign."""
    columns = rows.shape[1]
    if columns <= widest:
        return rows
    rng = np.random.default_rng(widest)
    narrow = rows[:, :widest].copy()
    slots = rng.integers(0, widest, size=(columns,))
    signs = 2.0 * rng.integers(0, 2, size=(columns,)) - 1.0
    np.add.at(narrow.T, slots[widest:], (rows * signs)[:, widest:].T)
    return narrow
