"""The mixture that predicts classes: probabilities, their uncertainty, and learning from labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bgd.streams import deep
from bgd.streams.deep import Net
from bgd.streams.encoding import Table
from bgd.streams.filters import Array, Bank, Forecast, learn_
from bgd.streams.finish import Finish, finished, follow
from bgd.streams.maps import FeatureMap
from bgd.streams.mixture import Group, Mixture, chunks, members
from bgd.streams.threads import one_thread

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
    >>> surprise = learner.learn(Table(x), np.array([0, 1] * 20), np.ones(40))
    >>> learner.proba(Table(x[:2])).argmax(1).tolist()
    [0, 1]
    """

    others: ClassVar[int] = 1
    finish: Finish = START
    net: Net | None = None
    """The deep member, whose probabilities are the last of a forecast's."""

    def proba(self, table: Table) -> Array:
        """The probability of each class, (B, C): the members' by their weights, then :mod:`bgd.streams.finish`."""
        return self.in_parts(lambda part: finished(self.finish, self._mixed(self.expect(part)[1])), table)

    def std(self, table: Table) -> Array:
        """The epistemic std of these probabilities, (B, C): what more data would remove.

        Within a member, p (1 - p) times the std of the logit, sqrt(8 exp(b) v / pi); between members, their spread.
        """
        return self.in_parts(self._std, table)

    def _std(self, table: Table) -> Array:
        _, seen = self.expect(table)
        assert self.bank is not None
        mean = self._mixed(seen)
        logit = 8.0 / math.pi * np.exp(self.bank.calibration[:, 1:]) * seen.variance
        each = np.square(seen.proba - mean)
        each[:-1] += np.square(seen.proba[:-1] * (1.0 - seen.proba[:-1])) * logit[..., None]
        result: Array = np.sqrt(np.einsum("m,mbc->bc", self.weights, each))
        return result

    def _forecast(self, raw: Array) -> Forecast:
        seen = super()._forecast(raw)
        assert self.net is not None, "nothing has been learnt"
        own = deep.predict(self.net, self._deep_inputs(seen))
        return seen._replace(proba=np.concatenate([seen.proba, own[None]]))

    def _make_room(self, columns: int, outputs: int) -> Bank:
        bank = super()._make_room(columns, outputs)
        inputs = bank.mean[0].shape[1] - 1
        if self.net is None:
            self.net = deep.begin(inputs, outputs, self.seed)
        elif (inputs, outputs) != (self.net.sizes[0], self.net.sizes[-1]):
            unseen = -math.log1p(min(self.seen, 1.0 / deep.FADING))
            self.net = deep.widen(self.net, inputs, outputs, self.seed, unseen)
        return bank

    def _deep_inputs(self, seen: Forecast) -> Array:
        """The linear features of the first group, a 1 first, on the scale of standardised columns."""
        x = seen.phi[0] * math.sqrt(self.encoder.scale)
        x[:, 0] = 1.0
        return x

    def _mixed(self, seen: Forecast) -> Array:
        each = seen.proba
        result: Array = (self.weights @ each.reshape(len(each), -1)).reshape(each.shape[1:])
        return result

    def learn(self, table: Table, codes: Codes, importance: Array, outputs: int = 0) -> Array:
        """Learn labels ``codes`` (B,), each with its weight above 0; ``outputs`` declares classes to come.

        Returns -log p of each label, as it was predicted before its part of the batch was learnt.
        """
        parts = chunks(len(table))
        each = [self._learn_chunk(table[part], codes[part], importance[part], outputs) for part in parts]
        surprise: Array = -np.log(np.concatenate(each))
        return surprise

    @one_thread
    def _learn_chunk(self, table: Table, codes: Codes, importance: Array, declared: int) -> Array:
        before = self.outputs
        outputs = max(before, int(codes.max()) + 1, declared)
        bank, seen = self.prepare(table, outputs)
        if outputs > before > 0:
            self._discourage(bank, before)
            seen = self._forecast(self.encoder.read(table))
        rows = np.arange(len(codes))
        labels = np.zeros((len(codes), outputs))
        labels[rows, codes] = 1.0
        self.finish, predicted = follow(self.finish, self._mixed(seen), labels, importance)
        right = seen.proba[:, rows, codes]
        if self.net is not None:
            deep.train_(self.net, self._deep_inputs(seen), labels, importance, self.seen)
        learn_(bank, seen, labels, importance)
        self.reweigh(np.log(np.maximum(right, LEAST_PROBABILITY)), importance)
        return predicted

    def _discourage(self, bank: Bank, first: int) -> None:
        """A class that no example had starts in the logistic members with the odds of never seen to seen."""
        remembered = np.minimum(self.seen, 1.0 / np.maximum(bank.drift, 1e-12))
        odds, at = np.where(bank.logistic, -np.log1p(remembered), 0.0), 0
        for mean in bank.mean:
            mean[:, 0, first:] = odds[at : at + len(mean), None]
            at += len(mean)
