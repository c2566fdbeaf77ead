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
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dsymm, dsymv, dsyrk, dtrsm, ssymm, ssymv, ssyrk
from scipy.linalg.lapack import dpotrf

Array: TypeAlias = NDArray[np.floating[Any]]

SOFTENING = math.log(math.pi / 8)
LEAST_CURVATURE = 0.02
STEEPNESS = math.log(6.0)
CALIBRATION_WINDOW = 1000.0
SINGLE = 1e-4
"""From this drift on a wide R is in float32: the q r that each example adds to every variance is far above rounding."""
NARROW = 64
"""Up to so many features it is not worth it."""


class Setting(NamedTuple):
    """What a member believes: the prior's variance of a weight, its drift per example, and its likelihood.

    >>> Setting(3.0, 0.0, logistic=False)
    Setting(variance=3.0, drift=0.0, logistic=False)
    """

    variance: float
    drift: float
    logistic: bool


class Bank(NamedTuple):
    """M members, those on the same D features in one group, with C outputs; :func:`learn_` changes its arrays in place.

    >>> start([[Setting(3.0, 0.0, False)]], [2], 3).mean[0].shape
    (1, 2, 3)
    """

    mean: tuple[Array, ...]
    """W of each group, (members, D, C)."""
    covariance: tuple[Array, ...]
    """R of each member, (D, D); below the diagonal it is not kept: :func:`symmetric`."""
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

    phi: tuple[Array, ...]
    """X of each group, (B, D)."""
    gain: tuple[Array, ...]
    """X R of each member, (B, D)."""
    kernel: Array
    """X R X^T, (M, B, B)."""
    variance: Array
    """v = phi^T R phi, (M, B)."""
    raw: Array
    """f = X W, (M, B, C)."""
    logits: Array
    """exp(a) f / sqrt(1 + exp(b) v), (M, B, C)."""
    proba: Array
    """softmax(logits), (M, B, C); a caller may append members of other kinds."""


def start(groups: Sequence[Sequence[Setting]], dims: Sequence[int], outputs: int) -> Bank:
    """Members that have seen nothing.

    >>> [r.tolist() for r in start([[Setting(3.0, 0.0, False), Setting(30.0, 1e-3, True)]], [1], 1).covariance]
    [[[3.0]], [[30.0]]]
    """
    settings = [setting for group in groups for setting in group]
    variance = np.array([s.variance for s in settings])
    logistic = np.array([s.logistic for s in settings])
    return Bank(
        mean=tuple(np.zeros((len(group), dim, outputs)) for group, dim in zip(groups, dims, strict=True)),
        covariance=tuple(_prior(s, dim) for group, dim in zip(groups, dims, strict=True) for s in group),
        variance=variance,
        drift=np.array([s.drift for s in settings]),
        logistic=logistic,
        calibration=np.where(logistic[:, None], [0.0, SOFTENING], [STEEPNESS, 0.0]),
        curvature=np.ones((len(settings), 2)),
    )


def _prior(setting: Setting, dim: int) -> Array:
    single = setting.drift >= SINGLE and dim > NARROW
    result: Array = np.zeros((dim, dim), np.float32 if single else np.float64)
    _diagonals(result)[:] = setting.variance
    return result


def grow(bank: Bank, dims: Sequence[int], outputs: int) -> Bank:
    """More features, which were zero so far, and more outputs, which no example had: the posterior is exactly this.

    >>> grow(start([[Setting(3.0, 0.0, False)]], [1], 1), [2], 3).covariance[0].tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    means = tuple(np.zeros((len(old), dim, outputs)) for old, dim in zip(bank.mean, dims, strict=True))
    for mean, old in zip(means, bank.mean, strict=True):
        mean[:, : old.shape[1], : old.shape[2]] = old
    covariances = []
    wider = [dim for mean, dim in zip(means, dims, strict=True) for _ in mean]
    for m, (covariance, dim) in enumerate(zip(bank.covariance, wider, strict=True)):
        setting = Setting(float(bank.variance[m]), float(bank.drift[m]), bool(bank.logistic[m]))
        covariances.append(_prior(setting, dim))
        covariances[m][: len(covariance), : len(covariance)] = covariance
    return bank._replace(mean=means, covariance=tuple(covariances))


def symmetric(covariance: Array) -> Array:
    """A whole matrix from one of which the part below the diagonal is not kept.

    >>> symmetric(np.array([[1.0, 2.0], [0.0, 3.0]])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    result: Array = np.triu(covariance) + np.triu(covariance, 1).T
    return result


def softmax(logits: Array) -> Array:
    """Over the last axis.

    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    result: Array = powers / powers.sum(-1, keepdims=True)
    return result


def forecast(bank: Bank, phi: Sequence[Array]) -> Forecast:
    """What the members expect of a batch, of which each group sees the features X (B, D); O(B D^2) each.

    >>> forecast(start([[Setting(3.0, 0.0, False)]], [1], 2), [np.ones((1, 1))]).proba.tolist()
    [[[0.5, 0.5]]]
    """
    each = [x for x, mean in zip(phi, bank.mean, strict=True) for _ in mean]
    gain = tuple(_times(covariance, x) for covariance, x in zip(bank.covariance, each, strict=True))
    kernel = np.empty((len(gain), len(phi[0]), len(phi[0])))
    for own, along, x in zip(kernel, gain, each, strict=True):
        np.matmul(along, x.T, out=own)
    variance = np.maximum(_diagonals(kernel), 0.0)
    raw = np.concatenate([x @ mean for x, mean in zip(phi, bank.mean, strict=True)])
    steepness, softening = np.exp(bank.calibration).T[..., None]
    logits = raw * (steepness / np.sqrt(1.0 + softening * variance))[..., None]
    return Forecast(tuple(phi), gain, kernel, variance, raw, logits, softmax(logits))


def _diagonals(square: Array) -> Array:
    """A view of the diagonals of matrices (..., B, B)."""
    return square.reshape(*square.shape[:-2], -1)[..., :: square.shape[-1] + 1]


def _times(covariance: Array, x: Array) -> Array:
    """X R (B, D), from the upper part of R; BLAS counts columns first, so it sees the transposes."""
    single = covariance.dtype == np.float32
    if len(x) == 1:
        times = ssymv if single else dsymv
        result: Array = times(1.0, covariance.T, x[0].astype(covariance.dtype, copy=False), lower=1)[None]
    else:
        times = ssymm if single else dsymm
        result = times(1.0, covariance.T, x.T.astype(covariance.dtype, copy=False), lower=1).T
    return result.astype(np.float64) if single else result


def learn_(bank: Bank, seen: Forecast, labels: Array, weights: Array) -> None:
    """Learn a batch in place: one-hot ``labels`` (B, C), ``weights`` (B,) above 0.

    >>> bank = start([[Setting(3.0, 0.0, False)]], [1], 2)
    >>> learn_(bank, forecast(bank, [np.ones((1, 1))]), np.array([[1.0, 0.0]]), np.ones(1))
    >>> bank.mean[0].tolist()  # 3 / (1 + 3)
    [[[0.75, 0.0]]]
    """
    logistic = bank.logistic[:, None]
    proba = seen.proba[: len(bank.logistic)]
    spread = np.square(proba).sum(-1)
    curvature = np.maximum((1.0 - spread) / max(labels.shape[1] - 1, 1), LEAST_CURVATURE)
    error = np.where(logistic[..., None], (labels - proba) / curvature[..., None], labels - seen.raw)
    absorb_(bank, seen, error, 1.0 / (weights * np.where(logistic, curvature, 1.0)))
    if not bank.logistic.all():
        _calibrate_(bank, seen, labels, weights)


def absorb_(bank: Bank, seen: Forecast, error: Array, noise: Array) -> Array:
    """One update of rank B with the errors (M, B, C) and noise variances (M, B), then the drift; whitened errors.

    The forecast's ``gain`` and ``kernel`` are used up.

    >>> bank = start([[Setting(1.0, 0.0, False)]], [1], 1)
    >>> absorb_(bank, forecast(bank, [np.ones((1, 1))]), np.ones((1, 1, 1)), np.ones((1, 1))).round(4).tolist()
    [[[0.7071]]]
    """
    white = np.array(error)
    keep = (1.0 - bank.drift) ** len(seen.phi[0])
    fresh = ((1.0 - keep) * bank.variance).tolist()
    _diagonals(seen.kernel)[:] += noise
    each = (mean for means in bank.mean for mean in means)
    for m, (mean, covariance, kept) in enumerate(zip(each, bank.covariance, keep.tolist(), strict=True)):
        _absorb_one_(mean, covariance, seen.gain[m], white[m], seen.kernel[m], kept)
        if fresh[m]:
            _diagonals(covariance)[:] += fresh[m]
    return white


def _absorb_one_(mean: Array, covariance: Array, gain: Array, error: Array, total: Array, keep: float) -> None:
    """The rank B update of one member; ``gain`` becomes H, ``error`` is whitened. BLAS sees the transposes."""
    root, failed = dpotrf(total.T, lower=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError(f"a covariance has lost its positive definiteness in row {failed}")
    half = dtrsm(1.0, root, gain.T, side=1, lower=1, trans_a=1, overwrite_b=1)
    white = dtrsm(1.0, root, error.T, side=1, lower=1, trans_a=1, overwrite_b=1)
    shrink = math.sqrt(keep)
    dgemm(shrink, white, half, shrink, mean.T, trans_b=1, overwrite_c=1)
    if covariance.dtype == np.float32:
        ssyrk(-keep, half.astype(np.float32), keep, covariance.T, lower=1, overwrite_c=1)
    else:
        dsyrk(-keep, half, keep, covariance.T, lower=1, overwrite_c=1)


def _calibrate_(bank: Bank, seen: Forecast, labels: Array, weights: Array) -> None:
    """One Newton step of a and b on the log-loss, of the least-squares members; the curvature fades over the window."""
    own = ~bank.logistic
    calibration, curvature, proba, logits = (
        part[: len(own)][own] for part in (bank.calibration, bank.curvature, seen.proba, seen.logits)
    )
    slack = np.exp(calibration[:, 1:]) * seen.variance[own]
    towards_b = -0.5 * slack / (1.0 + slack)
    weighted = proba * logits
    slope = (logits * labels - weighted).sum(-1) * weights
    bend = ((weighted * logits).sum(-1) - np.square(weighted.sum(-1))) * weights
    fresh, step = np.empty_like(calibration), np.empty_like(calibration)
    fresh[:, 0], fresh[:, 1] = bend.sum(-1), (bend * np.square(towards_b)).sum(-1)
    curvature = (1.0 - 1.0 / CALIBRATION_WINDOW) ** len(labels) * curvature + fresh
    step[:, 0], step[:, 1] = slope.sum(-1), (slope * towards_b).sum(-1)
    step /= curvature
    bank.curvature[own] = curvature
    bank.calibration[own] = np.clip(calibration + np.clip(step, -0.2, 0.2), -6.0, 6.0)
