r"""The mixture that predicts numbers: their mean, the std of all and of the epistemic part, and learning from targets.

Every output of a member has a noise variance s^2 of its own, unknown: s^2 ~ InverseGamma(a, b), where a counts half the
examples, b half the squared whitened errors, of the last thousand examples. So the prediction is Student's t of 2 a
degrees of freedom, mean f = W^T phi and scale^2 = (b / a) (1 + v), v = phi^T R phi: its density weighs the members.

Targets are on a running standardisation. When that moves, the weights are rewritten exactly, so that f in the units of
the data stays what it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import gammaln, logsumexp

from bgd.streams.encoding import Table
from bgd.streams.filters import Array, Bank, absorb_
from bgd.streams.maps import FeatureMap
from bgd.streams.mixture import Group, Mixture, chunks, members
from bgd.streams.scaling import Scaling, empty, observe
from bgd.streams.threads import one_thread

SHAPE, RATE = 2.0, 0.5
"""a and b before any data, for targets of variance 1."""
FADING = 1e-3
"""The noise is that of about the last 1,000 examples: a member's first errors say little of its later ones."""
LEAST_LOG = -12.0
"""Evidence counts no log density further below the best member's than this."""

MEMBERS: tuple[Group, ...] = members(
    (
        FeatureMap("linear", widest=256),
        [(10.0, 0.0, False), (1e4, 0.0, False), (100.0, 1e-3, False), (1000.0, 1e-2, False)],
    ),
    (FeatureMap("dense", 100, 1.0), [(10.0, 0.0, False), (1000.0, 1e-4, False)]),
    (FeatureMap("dense", 100, 0.5), [(10.0, 1e-3, False)]),
    (FeatureMap("sparse", 100, 0.5), [(10.0, 0.0, False), (100.0, 1e-3, False)]),
)


@dataclass
class TargetMixture(Mixture):
    """Targets are numbers, (B, K).

    >>> learner = TargetMixture(MEMBERS)
    >>> x = np.linspace(-1, 1, 64)[:, None]
    >>> surprise = learner.learn(Table(x), 3 * x + 100, np.ones(64))
    >>> abs(learner.predict(Table(x[:1])).item() - 97.0) < 1.0
    True
    """

    scaling: Scaling = field(default_factory=lambda: empty(0))
    shape: Array = field(default_factory=lambda: np.zeros(0))
    """a of each member, (M,)."""
    rate: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """b of each member and output, (M, K)."""

    def predict(self, table: Table) -> Array:
        """The mean of every output, (B, K)."""
        return self.in_parts(self._predict, table)

    def _predict(self, table: Table) -> Array:
        raw, _, _ = self._latent(table)
        result: Array = self.scaling.mean + self._scale() * np.einsum("m,mbk->bk", self.weights, raw)
        return result

    def std(self, table: Table, epistemic: bool = False) -> Array:
        """The std of every output, (B, K): of what will be observed, or the epistemic part, which more data removes."""
        return self.in_parts(lambda part: self._std(part, epistemic), table)

    def _std(self, table: Table, epistemic: bool) -> Array:
        raw, variance, noise = self._latent(table)
        mean = np.einsum("m,mbk->bk", self.weights, raw)
        within = noise[:, None, :] * (variance[..., None] + (0.0 if epistemic else 1.0))
        total = np.einsum("m,mbk->bk", self.weights, within + np.square(raw - mean))
        result: Array = self._scale() * np.sqrt(total)
        return result

    def _latent(self, table: Table) -> tuple[Array, Array, Array]:
        """F (M, B, K), v (M, B) and E[s^2] (M, K) on the scale of the standardised targets."""
        _, seen = self.expect(table)
        return seen.raw, seen.variance, self.rate / (self.shape - 1.0)[:, None]

    def _scale(self) -> Array:
        return _std(self.scaling)

    def learn(self, table: Table, targets: Array, importance: Array) -> Array:
        """Learn targets (B, K), each row with its weight above 0; returns -log p of each, before it was learnt.

        The density is that of targets on the running standardisation.
        """
        return np.concatenate([self._learn_chunk(table[p], targets[p], importance[p]) for p in chunks(len(table))])

    @one_thread
    def _learn_chunk(self, table: Table, targets: Array, importance: Array) -> Array:
        if self.bank is None:
            self.scaling = empty(targets.shape[1])
            self.shape = np.full(len(self.weights), SHAPE)
            self.rate = np.full((len(self.weights), targets.shape[1]), RATE)
        bank, seen = self.prepare(table, targets.shape[1])
        raw = seen.raw
        if self._rescale(bank, observe(self.scaling, targets)):
            raw = np.concatenate([x @ mean for x, mean in zip(seen.phi, bank.mean, strict=True)])
        error = (targets - self.scaling.mean) / self._scale() - raw
        logs = self._log_densities(seen.variance, error)
        white = absorb_(bank, seen, error, np.broadcast_to(1.0 / importance, seen.variance.shape))
        keep = (1.0 - np.maximum(bank.drift, FADING)) ** len(table)
        self.shape = keep * self.shape + (1.0 - keep) * SHAPE + importance.sum() / 2
        fading = keep[:, None]
        self.rate = fading * self.rate + (1.0 - fading) * RATE / 10 + np.square(white).sum(1) / 2
        surprise: Array = -logsumexp(logs, axis=0, b=self.weights[:, None])
        self.reweigh(np.maximum(logs, logs.max(0) + LEAST_LOG), importance)
        return surprise

    def _log_densities(self, variance: Array, error: Array) -> Array:
        """Log p of each example under each member, (M, B), all outputs together."""
        spread = variance[..., None]
        a, b = self.shape[:, None, None], self.rate[:, None, :]
        gammas = gammaln(a + 0.5) - gammaln(a) - 0.5 * np.log(2 * np.pi * b * (1.0 + spread))
        result: Array = (gammas - (a + 0.5) * np.log1p(np.square(error) / (2 * b * (1.0 + spread)))).sum(-1)
        return result

    def _rescale(self, bank: Bank, new: Scaling) -> bool:
        """Rewrite weights and noise for a new standardisation of the targets; whether it has changed."""
        ratio, shift = self._scale() / _std(new), (self.scaling.mean - new.mean) / _std(new)
        fresh, self.scaling = not self.scaling.seen.any(), new
        if fresh:
            return False
        for mean in bank.mean:
            mean *= ratio
            mean[:, 0, :] += shift
        self.rate *= np.square(ratio)
        return True


def _std(scaling: Scaling) -> Array:
    """The std of targets; 1 while all were equal."""
    std = np.sqrt(scaling.variance)
    result: Array = np.where(std > 1e-12 * np.abs(scaling.mean), np.maximum(std, 1e-150), 1.0)
    return result
