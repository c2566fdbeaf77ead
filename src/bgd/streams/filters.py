r"""Linear heads on shared features, side by side: each a Gaussian posterior that drifts back to its prior.

A member has weights W (D, C), all columns with one covariance R, and the model of a weight that wanders and is drawn
to zero (Ornstein and Uhlenbeck): per example W <- sqrt(1 - q) W + noise, so that R <- (1 - q) R + q r I, where r is the
prior's variance and q the drift. With q = 0 nothing is forgotten. An example has features phi, and

- a *least-squares* member sees its one-hot label as W^T phi plus noise of variance 1: :mod:`bgd.exact.head` with
  ridge 1 / r. Its probabilities are softmax(exp(a) f / sqrt(1 + exp(b) v)) of f = W^T phi and the variance
  v = phi^T R phi; a and b follow the log-loss by a running Newton step, on examples that the member had not learnt.
- a *logistic* member has a = 0 and exp(b) = pi / 8 (MacKay). Its likelihood is linearised at its own prediction p: the
  noise is 1 / w with w = sum p (1 - p) / (C - 1), the mean curvature of the softmax, and the error is (y - p) / w.

Both learn a batch by one update of rank B (K examples' gain, Woodbury), O(B D^2) a member, in float64:

    T = X R X^T + diag(1 / w) = L L^T    H = L^-1 X R    R <- R - H^T H    W <- W + H^T L^-1 E
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm

Array: TypeAlias = NDArray[np.floating[Any]]

SOFTENING = math.log(math.pi / 8)
LEAST_CURVATURE = 0.02
STEEPNESS = math.log(6.0)
CALIBRATION_WINDOW = 1000.0


class Setting(NamedTuple):
    """What a member believes: the prior's variance of a weight, its drift per example, and its likelihood.

    >>> Setting(3.0, 0.0, logistic=False)
    Setting(variance=3.0, drift=0.0, logistic=False)
    """

    variance: float
    drift: float
    logistic: bool


class Bank(NamedTuple):
    """M members on the same D features, with C outputs; :func:`learn_` changes its arrays in place.

    >>> start([Setting(3.0, 0.0, False)], 2, 3).mean.shape
    (1, 2, 3)
    """

    mean: Array
    """W, (M, D, C)."""
    covariance: Array
    """R, (M, D, D)."""
    variance: Array
    """r of the prior, (M,)."""
    drift: Array
    """q, (M,)."""
    logistic: NDArray[np.bool_]
    """The kind of each member, (M,)."""
    calibration: Array
    """a and b, (M, 2)."""
    curvature: Array
    """Of the log-loss in a and b, over the last examples, (M, 2)."""


class Forecast(NamedTuple):
    """What the members expect of a batch, and what learning it needs."""

    phi: Array
    """X, (B, D)."""
    gain: Array
    """X R, (M, B, D)."""
    variance: Array
    """v = phi^T R phi, (M, B)."""
    raw: Array
    """f = X W, (M, B, C)."""
    logits: Array
    """exp(a) f / sqrt(1 + exp(b) v), (M, B, C)."""
    proba: Array
    """softmax(logits), (M, B, C)."""


def start(settings: list[Setting], dim: int, outputs: int) -> Bank:
    """Members that have seen nothing.

    >>> start([Setting(3.0, 0.0, False), Setting(30.0, 1e-3, True)], 2, 1).covariance[:, 0, 0]
    array([ 3., 30.])
    """
    variance = np.array([s.variance for s in settings])
    logistic = np.array([s.logistic for s in settings])
    calibration = np.where(logistic[:, None], [0.0, SOFTENING], [STEEPNESS, 0.0])
    return Bank(
        mean=np.zeros((len(settings), dim, outputs)),
        covariance=np.eye(dim) * variance[:, None, None],
        variance=variance,
        drift=np.array([s.drift for s in settings]),
        logistic=logistic,
        calibration=calibration,
        curvature=np.ones((len(settings), 2)),
    )


def grow(bank: Bank, dim: int, outputs: int) -> Bank:
    """More features, which were zero so far, and more outputs, which no example had: the posterior is exactly this.

    >>> grow(start([Setting(3.0, 0.0, False)], 1, 1), 2, 3).covariance[0].tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    members, old_dim, old_outputs = bank.mean.shape
    mean = np.zeros((members, dim, outputs))
    mean[:, :old_dim, :old_outputs] = bank.mean
    covariance = np.eye(dim) * bank.variance[:, None, None]
    covariance[:, :old_dim, :old_dim] = bank.covariance
    return bank._replace(mean=mean, covariance=covariance)


def softmax(logits: Array) -> Array:
    """Over the last axis.

    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    result: Array = powers / powers.sum(-1, keepdims=True)
    return result


def forecast(bank: Bank, phi: Array) -> Forecast:
    """What the members expect of a batch of features X (B, D); O(B D^2) each.

    >>> forecast(start([Setting(3.0, 0.0, False)], 1, 2), np.ones((1, 1))).proba.tolist()
    [[[0.5, 0.5]]]
    """
    gain = phi @ bank.covariance
    variance = np.maximum(np.einsum("mbd,bd->mb", gain, phi), 0.0)
    raw = phi @ bank.mean
    steepness, softening = np.exp(bank.calibration).T[..., None]
    logits = raw * (steepness / np.sqrt(1.0 + softening * variance))[..., None]
    return Forecast(phi, gain, variance, raw, logits, softmax(logits))


def learn_(bank: Bank, seen: Forecast, labels: Array, weights: Array) -> None:
    """Learn a batch in place: one-hot ``labels`` (B, C), ``weights`` (B,) above 0.

    >>> bank = start([Setting(3.0, 0.0, False)], 1, 2)
    >>> learn_(bank, forecast(bank, np.ones((1, 1))), np.array([[1.0, 0.0]]), np.ones(1))
    >>> bank.mean.tolist()  # 3 / (1 + 3)
    [[[0.75, 0.0]]]
    """
    logistic = bank.logistic[:, None]
    spread = np.square(seen.proba).sum(-1)
    curvature = np.maximum((1.0 - spread) / max(labels.shape[1] - 1, 1), LEAST_CURVATURE)
    error = np.where(logistic[..., None], (labels - seen.proba) / curvature[..., None], labels - seen.raw)
    absorb_(bank, seen, error, 1.0 / (weights * np.where(logistic, curvature, 1.0)))
    if not bank.logistic.all():
        _calibrate_(bank, seen, labels, weights)


def absorb_(bank: Bank, seen: Forecast, error: Array, noise: Array) -> Array:
    """One update of rank B with the errors (M, B, C) and noise variances (M, B), then the drift; whitened errors.

    >>> bank = start([Setting(1.0, 0.0, False)], 1, 1)
    >>> absorb_(bank, forecast(bank, np.ones((1, 1))), np.ones((1, 1, 1)), np.ones((1, 1))).round(4).tolist()
    [[[0.7071]]]
    """
    rows = len(seen.phi)
    total = seen.gain @ seen.phi.T
    np.einsum("mbb->mb", total)[:] += noise
    inverse = np.linalg.inv(np.linalg.cholesky(total))
    half, white = inverse @ seen.gain, inverse @ error
    keep = (1.0 - bank.drift) ** rows
    for m, kept in enumerate(keep):
        mean, covariance, transposed = bank.mean[m], bank.covariance[m], half[m].T
        mean += transposed @ white[m]
        dgemm(-kept, transposed, transposed, kept, covariance.T, trans_b=True, overwrite_c=True)  # one pass over R
        if kept < 1.0:
            mean *= math.sqrt(kept)
            covariance.reshape(-1)[:: len(covariance) + 1] += (1.0 - kept) * bank.variance[m]
    return white


def _calibrate_(bank: Bank, seen: Forecast, labels: Array, weights: Array) -> None:
    """One Newton step of a and b on the log-loss, of the least-squares members; the curvature fades over the window."""
    own = ~bank.logistic
    calibration, curvature, proba, logits = (
        part[own] for part in (bank.calibration, bank.curvature, seen.proba, seen.logits)
    )
    slack = np.exp(calibration[:, 1:]) * seen.variance[own]
    towards_b = -0.5 * slack / (1.0 + slack)
    weighted = proba * logits
    slope = (logits * labels - weighted).sum(-1) * weights
    bend = ((weighted * logits).sum(-1) - np.square(weighted.sum(-1))) * weights
    fresh = np.stack([bend.sum(-1), (bend * np.square(towards_b)).sum(-1)], -1)
    curvature = (1.0 - 1.0 / CALIBRATION_WINDOW) ** len(labels) * curvature + fresh
    step = np.stack([slope.sum(-1), (slope * towards_b).sum(-1)], -1) / curvature
    bank.curvature[own] = curvature
    bank.calibration[own] = np.clip(calibration + np.clip(step, -0.2, 0.2), -6.0, 6.0)
