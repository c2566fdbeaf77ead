"""Members side by side on encoded rows, weighted by how well they predicted.

The weight of a member is its evidence, the product of the probabilities that it gave to what came before it learnt it,
with a share that all members get back at each example (fixed share, Herbster and Warmuth 1998):

    w <- (1 - a) w p(y | x) / sum(w p(y | x)) + a / M,    a = ``SHARE``

so that a member which has become the best leads again after about log(M / a) nats. At first the weights are equal.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bgd.streams.encoding import Encoder, Table
from bgd.streams.filters import Array, Bank, Forecast, Setting, forecast, grow, start
from bgd.streams.maps import FeatureMap

SHARE = 1e-3
CHUNK = 32
"""Larger batches are learnt in parts of so many rows."""
YOUNG = 128
"""Up to so many examples a batch is standardised with its own statistics too."""

Group = tuple[FeatureMap, tuple[Setting, ...]]


def reweigh(weights: Array, evidence: Array, examples: int) -> Array:
    """The weights after a batch with these log probabilities.

    >>> reweigh(np.array([0.5, 0.5]), np.log([0.9, 0.1]), 1).round(4)
    array([0.8996, 0.1004])
    """
    logs = np.log(weights) + evidence
    powers = np.exp(logs - logs.max())
    share = 1.0 - (1.0 - SHARE) ** examples
    result: Array = (1.0 - share) * powers / powers.sum() + share / len(weights)
    return result


@dataclass
class Mixture:
    """The state that learners of classes and of numbers share; arrays of ``banks`` are changed in place."""

    groups: tuple[Group, ...]
    seed: int = 0
    outputs: int = 0
    seen: int = 0
    encoder: Encoder = field(default_factory=Encoder)
    banks: list[Bank] = field(default_factory=list)
    omegas: list[Array] = field(default_factory=list)
    weights: Array = field(default_factory=lambda: np.zeros(0))
    _last: tuple[Table, Array, list[Forecast]] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        members = sum(len(settings) for _, settings in self.groups)
        if not len(self.weights):
            self.weights = np.full(members, 1.0 / members)

    def copy(self) -> Mixture:
        """A learner of its own, in the same state."""
        self._last = None
        return copy.deepcopy(self)

    def expect(self, table: Table) -> tuple[Array, list[Forecast]]:
        """The raw rows and every bank's forecast; that of the last rows is remembered until something is learnt."""
        if self._last is None or not self._last[0].same(table):
            raw = self.encoder.read(table)
            self._last = (table.copy(), raw, self._forecast(raw))
        return self._last[1:]

    def _forecast(self, raw: Array) -> list[Forecast]:
        rows, scale = self.encoder.encode(raw), self.encoder.scale
        maps = zip(self.groups, self.omegas, self.banks, strict=True)
        return [forecast(bank, group[0].apply(rows, omega, scale)) for group, omega, bank in maps]

    def prepare(self, table: Table, outputs: int) -> list[Forecast]:
        """Make room for new columns and outputs, update the scaling, and forecast what is about to be learnt."""
        raw = self.encoder.read(table, grow=True)
        if (columns := raw.shape[1]) != (self.omegas[0].shape[0] if self.omegas else -1) or outputs != self.outputs:
            self._make_room(columns, outputs)
        if self.seen >= YOUNG:
            _, forecasts = self.expect(table)
            self.encoder.learn(raw)
        else:
            self.encoder.learn(raw)
            forecasts = self._forecast(raw)
        self._last = None
        self.seen += len(table)
        return forecasts

    def _make_room(self, columns: int, outputs: int) -> None:
        scale = self.encoder.scale
        if not self.omegas or columns != self.omegas[0].shape[0]:
            self.omegas = [group[0].draw(columns, scale, self.seed) for group in self.groups]
        empty = np.zeros((1, columns))
        sizes = [g[0].apply(empty, o, scale).shape[1] for g, o in zip(self.groups, self.omegas, strict=True)]
        if self.banks:
            self.banks = [grow(bank, size, outputs) for bank, size in zip(self.banks, sizes, strict=True)]
        else:
            self.banks = [start(list(g[1]), size, outputs) for g, size in zip(self.groups, sizes, strict=True)]
        self.outputs = outputs
        self._last = None

    def reweigh(self, logs: Array, importance: Array) -> None:
        """Weigh the members by the log probabilities (M, B) of a batch before it was learnt."""
        self.weights = reweigh(self.weights, logs @ importance, logs.shape[1])


def chunks(rows: int) -> Iterator[slice]:
    """Parts of a batch.

    >>> list(chunks(40))
    [slice(0, 32, None), slice(32, 64, None)]
    """
    return (slice(at, at + CHUNK) for at in range(0, rows, CHUNK))


def members(*groups: tuple[FeatureMap, Any]) -> tuple[Group, ...]:
    """Groups of settings given as (variance, drift, logistic).

    >>> members((FeatureMap("linear"), [(3.0, 0.0, True)]))[0][1]
    (Setting(variance=3.0, drift=0.0, logistic=True),)
    """
    return tuple((features, tuple(Setting(*setting) for setting in settings)) for features, settings in groups)
