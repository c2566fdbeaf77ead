"""The mixture that predicts classes: probabilities, their uncertainty, and learning from labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bgd.streams.encoding import Table
from bgd.streams.filters import Array, Forecast, learn_
from bgd.streams.finish import Finish, finished, follow
from bgd.streams.maps import FeatureMap
from bgd.streams.mixture import Group, Mixture, chunks, members

Codes: TypeAlias = NDArray[np.integer[Any]]

START = Finish()
LEAST_PROBABILITY = 1e-4
"""Evidence counts no probability below this: one surprise shall not silence a member for ever."""

MEMBERS: tuple[Group, ...] = members(
    (FeatureMap("linear", widest=256), [(30.0, 10.0**-k, True) for k in (6, 5, 4, 3, 2)]),
    (FeatureMap("dense", 100, 1.0), [(3.0, 0.0, False), (3.0, 1e-4, True)]),
    (FeatureMap("dense", 100, 0.5), [(3.0, 1e-3, False)]),
    (FeatureMap("sparse", 100, 0.5), [(3.0, 0.0, False), (30.0, 1e-3, True)]),
)


@dataclass
class ClassMixture(Mixture):
    """Classes are whole numbers from 0, in the order of their first example.

    >>> learner = ClassMixture(MEMBERS)
    >>> x = np.array([[0.0], [1.0]] * 20)
    >>> learner.learn(Table(x), np.array([0, 1] * 20), np.ones(40))
    >>> learner.proba(Table(x[:2])).argmax(1).tolist()
    [0, 1]
    """

    finish: Finish = START

    def proba(self, table: Table) -> Array:
        """The probability of each class, (B, C): the members' by their weights, then :mod:`bgd.streams.finish`."""
        return finished(self.finish, self._mixed(self.expect(table)[1]))

    def std(self, table: Table) -> Array:
        """The epistemic std of these probabilities, (B, C): what more data would remove.

        Within a member, p (1 - p) times the std of the logit, sqrt(8 exp(b) v / pi); between members, their spread.
        """
        each = np.concatenate([f.proba for f in self.expect(table)[1]])
        mean = np.einsum("m,mbc->bc", self.weights, each)
        pairs = zip(self.banks, self.expect(table)[1], strict=True)
        logit = np.concatenate([8.0 / math.pi * np.exp(bank.calibration[:, 1:]) * f.variance for bank, f in pairs])
        within = np.square(each * (1.0 - each)) * logit[..., None]
        result: Array = np.sqrt(np.einsum("m,mbc->bc", self.weights, within + np.square(each - mean)))
        return result

    def _mixed(self, forecasts: list[Forecast]) -> Array:
        members, start = np.split(self.weights, np.cumsum([len(f.proba) for f in forecasts])[:-1]), 0.0
        return sum(
            (np.tensordot(w, f.proba, 1) for w, f in zip(members, forecasts, strict=True)), start=np.array(start)
        )

    def learn(self, table: Table, codes: Codes, importance: Array, outputs: int = 0) -> None:
        """Learn labels ``codes`` (B,), each with its weight above 0; ``outputs`` declares classes to come."""
        for part in chunks(len(table)):
            self._learn_chunk(table[part], codes[part], importance[part], outputs)

    def _learn_chunk(self, table: Table, codes: Codes, importance: Array, declared: int) -> None:
        before = self.outputs
        outputs = max(before, int(codes.max()) + 1, declared)
        forecasts = self.prepare(table, outputs)
        if outputs > before > 0:
            self._discourage(before)
            forecasts = self._forecast(self.encoder.read(table))
        labels = np.zeros((len(codes), outputs))
        labels[range(len(codes)), codes] = 1.0
        self.finish = follow(self.finish, self._mixed(forecasts), labels, importance)
        right = np.concatenate([f.proba[:, range(len(codes)), codes] for f in forecasts])
        for bank, seen in zip(self.banks, forecasts, strict=True):
            learn_(bank, seen, labels, importance)
        self.reweigh(np.log(np.maximum(right, LEAST_PROBABILITY)), importance)

    def _discourage(self, first: int) -> None:
        """A class that no example had starts in the logistic members with the odds of never seen to seen."""
        for bank in self.banks:
            remembered = np.minimum(self.seen, 1.0 / np.maximum(bank.drift, 1e-12))
            bank.mean[:, 0, first:] = np.where(bank.logistic, -np.log1p(remembered), 0.0)[:, None]
