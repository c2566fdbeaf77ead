r"""The mixture that predicts numbers: their mean, the std of all and of the epistemic part, and learning from targets.

Every output of a member has a noise variance s^2 of its own, unknown: s^2 ~ InverseGamma(a, b), where a counts half the
examples, b half the squared whitened errors, of the last thousand examples. So the prediction is Student's t of 2 a
degrees of freedom, mean f = W^T phi and scale^2 = (b / a) (1 + v), v = phi^T R phi: its density weighs the members.

Targets are on a running standardisation. When that moves, the weights are rewritten exactly, so that f in the units of
the data stays what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import gammaln

from bgd.streams.encoding import Table
from bgd.streams.filters import Array, Forecast, absorb_
from bgd.streams.maps import FeatureMap
from bgd.streams.mixture import Group, Mixture, chunks, members
from bgd.streams.scaling import Scaling, empty, observe

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
    >>> learner.learn(Table(x), 3 * x + 100, np.ones(64))
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
        raw, _, _ = self._latent(table)
        result: Array = self.scaling.mean + self._scale() * np.einsum("m,mbk->bk", self.weights, raw)
        return result

    def std(self, table: Table, epistemic: bool = False) -> Array:
        """The std of every output, (B, K): of what will be observed, or the epistemic part, which more data removes."""
        raw, variance, noise = self._latent(table)
        mean = np.einsum("m,mbk->bk", self.weights, raw)
        within = noise[:, None, :] * (variance[..., None] + (0.0 if epistemic else 1.0))
        total = np.einsum("m,mbk->bk", self.weights, within + np.square(raw - mean))
        result: Array = self._scale() * np.sqrt(total)
        return result

    def _latent(self, table: Table) -> tuple[Array, Array, Array]:
        """F (M, B, K), v (M, B) and E[s^2] (M, K) on the scale of the standardised targets."""
        _, forecasts = self.expect(table)
        raw = np.concatenate([f.raw for f in forecasts])
        return raw, np.concatenate([f.variance for f in forecasts]), self.rate / (self.shape - 1.0)[:, None]

    def _scale(self) -> Array:
        return _std(self.scaling)

    def learn(self, table: Table, targets: Array, importance: Array) -> None:
        """Learn targets (B, K), each row with its weight above 0."""
        for part in chunks(len(table)):
            self._learn_chunk(table[part], targets[part], importance[part])

    def _learn_chunk(self, table: Table, targets: Array, importance: Array) -> None:
        if not self.banks:
            self.scaling = empty(targets.shape[1])
            self.shape = np.full(len(self.weights), SHAPE)
            self.rate = np.full((len(self.weights), targets.shape[1]), RATE)
        forecasts = self.prepare(table, targets.shape[1])
        if self._rescale(observe(self.scaling, targets)):
            forecasts = [f._replace(raw=f.phi @ bank.mean) for f, bank in zip(forecasts, self.banks, strict=True)]
        errors = [(targets - self.scaling.mean) / self._scale() - f.raw for f in forecasts]
        logs = self._log_densities(forecasts, errors)
        at = 0
        for bank, seen, error in zip(self.banks, forecasts, errors, strict=True):
            white = absorb_(bank, seen, error, np.broadcast_to(1.0 / importance, seen.variance.shape))
            own = slice(at, at := at + len(bank.drift))
            keep = (1.0 - np.maximum(bank.drift, FADING)) ** len(table)
            self.shape[own] = keep * self.shape[own] + (1.0 - keep) * SHAPE + importance.sum() / 2
            fading = keep[:, None]
            self.rate[own] = fading * self.rate[own] + (1.0 - fading) * RATE / 10 + np.square(white).sum(1) / 2
        self.reweigh(np.maximum(logs, logs.max(0) + LEAST_LOG), importance)

    def _log_densities(self, forecasts: list[Forecast], errors: Sequence[Array]) -> Array:
        """Log p of each example under each member, (M, B), all outputs together."""
        variance = np.concatenate([f.variance for f in forecasts])[..., None]
        square = np.square(np.concatenate(errors))
        a, b = self.shape[:, None, None], self.rate[:, None, :]
        gammas = gammaln(a + 0.5) - gammaln(a) - 0.5 * np.log(2 * np.pi * b * (1.0 + variance))
        result: Array = (gammas - (a + 0.5) * np.log1p(square / (2 * b * (1.0 + variance)))).sum(-1)
        return result

    def _rescale(self, new: Scaling) -> bool:
        """Rewrite weights and noise for a new standardisation of the targets; whether it has changed."""
        ratio, shift = self._scale() / _std(new), (self.scaling.mean - new.mean) / _std(new)
        fresh, self.scaling = not self.scaling.seen.any(), new
        if fresh:
            return False
        for bank in self.banks:
            bank.mean[:] *= ratio
            bank.mean[:, 0, :] += shift
        self.rate *= np.square(ratio)
        return True


def _std(scaling: Scaling) -> Array:
    """The std of targets; 1 while all were equal."""
    std = np.sqrt(scaling.variance)
    result: Array = np.where(std > 1e-12 * np.abs(scaling.mean), np.maximum(std, 1e-150), 1.0)
    return result
