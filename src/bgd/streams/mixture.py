"""Members side by side on encoded rows, weighted by how well they predicted.

The weight of a member is its evidence, the product of the probabilities that it gave to what came before it learnt it,
with a share that all members get back at each example (fixed share, Herbster and Warmuth 1998):

    w <- (1 - a) w p(y | x) / sum(w p(y | x)) + a / M,    a = ``SHARE``

so that a member which has become the best leads again after about log(M / a) nats. At first the weights are equal.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from bgd.streams.encoding import Encoder, Table
from bgd.streams.filters import Array, Bank, Forecast, Setting, forecast, grow, start
from bgd.streams.maps import FeatureMap, apply
from bgd.streams.threads import one_thread

SHARE = 1e-3
CHUNK = 32
"""Larger batches are learnt in parts of so many rows."""
AT_ONCE = 256
"""Larger tables are predicted in parts of so many rows."""
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
    """The state that learners of classes and of numbers share; arrays of ``bank`` are changed in place."""

    groups: tuple[Group, ...]
    seed: int = 0
    outputs: int = 0
    seen: int = 0
    encoder: Encoder = field(default_factory=Encoder)
    bank: Bank | None = None
    omegas: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """The frequencies of all groups side by side, (columns, frequencies)."""
    weights: Array = field(default_factory=lambda: np.zeros(0))
    _last: tuple[Table, Array, Forecast] | None = field(default=None, repr=False, compare=False)

    others: ClassVar[int] = 0
    """Members of other kinds than those of the groups."""

    def __post_init__(self) -> None:
        members = sum(len(settings) for _, settings in self.groups) + self.others
        if not len(self.weights):
            self.weights = np.full(members, 1.0 / members)

    def copy(self) -> Mixture:
        """A learner of its own, in the same state."""
        self._last = None
        return copy.deepcopy(self)

    @property
    def maps(self) -> list[FeatureMap]:
        """The feature map of each group."""
        return [features for features, _ in self.groups]

    def expect(self, table: Table) -> tuple[Array, Forecast]:
        """The raw rows and the members' forecast; that of the last rows is remembered until something is learnt."""
        if self._last is None or not self._last[0].same(table):
            raw = self.encoder.read(table)
            self._last = (table.copy(), raw, self._forecast(raw))
        return self._last[1:]

    def in_parts(self, ask: Callable[[Table], Array], table: Table) -> Array:
        """An answer for every row, asked for in parts, with one thread."""
        ask = one_thread(ask)
        if len(table) <= AT_ONCE:
            return ask(table)
        return np.concatenate([ask(table[part]) for part in chunks(len(table), AT_ONCE)])

    def _forecast(self, raw: Array) -> Forecast:
        assert self.bank is not None, "nothing has been learnt"
        rows, scale = self.encoder.encode(raw), self.encoder.scale
        return forecast(self.bank, apply(self.maps, rows, self.omegas, scale))

    def prepare(self, table: Table, outputs: int) -> tuple[Bank, Forecast]:
        """Make room for new columns and outputs, update the scaling, and forecast what is about to be learnt."""
        raw = self.encoder.read(table, grow=True)
        bank = self._make_room(raw.shape[1], outputs)
        if self.seen >= YOUNG:
            _, expected = self.expect(table)
            self.encoder.learn(raw)
        else:
            self.encoder.learn(raw)
            expected = self._forecast(raw)
        self._last = None
        self.seen += len(table)
        return bank, expected

    def _make_room(self, columns: int, outputs: int) -> Bank:
        known = self.bank is not None and columns == len(self.omegas)
        if self.bank is not None and known and outputs == self.outputs:
            return self.bank
        scale = self.encoder.scale
        if not known:
            self.omegas = frequencies(self.maps, columns, scale, self.seed)
        sizes = [x.shape[1] for x in apply(self.maps, np.zeros((1, columns)), self.omegas, scale)]
        settings = [group[1] for group in self.groups]
        self.bank = start(settings, sizes, outputs) if self.bank is None else grow(self.bank, sizes, outputs)
        self.outputs, self._last = outputs, None
        return self.bank

    def reweigh(self, logs: Array, importance: Array) -> None:
        """Weigh the members by the log probabilities (M, B) of a batch before it was learnt."""
        self.weights = reweigh(self.weights, logs @ importance, logs.shape[1])


def frequencies(maps: Sequence[FeatureMap], columns: int, scale: int, seed: int) -> Array:
    """The Omegas of all maps side by side.

    >>> frequencies([FeatureMap("linear"), FeatureMap("dense", 3)], 2, 2, 0).shape
    (2, 3)
    """
    return np.concatenate([one.draw(columns, scale, seed) for one in maps], 1)


def chunks(rows: int, size: int = CHUNK) -> Iterator[slice]:
    """Parts of a batch, at least one.

    >>> list(chunks(40))
    [slice(0, 32, None), slice(32, 64, None)]
    """
    return (slice(at, at + size) for at in range(0, max(rows, 1), size))


def members(*groups: tuple[FeatureMap, Any]) -> tuple[Group, ...]:
    """Groups of settings given as (variance, drift, logistic).

    >>> members((FeatureMap("linear"), [(3.0, 0.0, True)]))[0][1]
    (Setting(variance=3.0, drift=0.0, logistic=True),)
    """
    return tuple((features, tuple(Setting(*setting) for setting in settings)) for features, settings in groups)
