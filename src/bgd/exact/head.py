"""The exact Bayesian linear head: the posterior of a linear map from features to outputs, updated in closed form.

The model: y = W^T phi(x) + noise, noise ~ N(0, s^2) of each output, W ~ N(0, s^2 / ridge). Then W is Gaussian for ever:

    precision L = ridge I + sum phi phi^T        B = sum phi y^T        mean W = L^-1 B        covariance s^2 L^-1

It does not depend on the order of the data. A batch X (B, D), Y (B, K) needs no inverse of L (Woodbury): with R = L^-1,

    S = I + X R X^T = C C^T     H = C^-1 X R     E = C^-1 (Y - X W)     R <- R - H^T H     W <- W + H^T E

so one batch costs O(B D^2), and R stays symmetric bit for bit. E^T E adds up to ``residual`` = Y^T Y - W^T L W of all
data, which estimates s^2 where it is unknown (the normal-inverse-gamma model, see :mod:`bgd.exact.evidence`).

Shapes: D features, K outputs, B examples. Functions also take heads with leading axes ``*M``, "members" with, say,
other ridges or discounts, that learn side by side: arrays of the head then have these axes in front, and ``phi`` and
``targets`` are shared (B, D), (B, K) or each member's own (*M, B, D), (*M, B, K).

All is float64. The condition number of L is at most 1 + (sum of |phi|^2) / ridge; where it is 1e12, the mean still has
eight digits against a singular value decomposition of all data, and R stays positive definite.

>>> import numpy as np
>>> x, y = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[1.0], [3.0]])
>>> head = update(init(2, 1, ridge=1e-9), x, y)
>>> head.mean.round(6).tolist()  # y = 1 + 2 x
[[1.0], [2.0]]
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bgd.errors import SettingError

Array: TypeAlias = NDArray[np.floating[Any]]


class ExactError(SettingError):
    """Data or numbers that the exact head cannot use; the head is as it was."""


class Head(NamedTuple):
    """The posterior. Arrays are float64; treat them as read-only (``absorb_`` excepted).

    >>> init(3, 2).mean.shape
    (3, 2)
    """

    mean: Array
    """W, (*M, D, K)."""
    covariance: Array
    """R = L^-1, (*M, D, D): the covariance of each column of W in units of the noise variance s^2."""
    ridge: Array
    """The prior's precision L0 = ridge I, (*M,)."""
    remaining: Array
    """How much of the prior is left in L, (*M,): 1, unless ``fade`` reduced it and ``restore`` has not run."""
    examples: Array
    """Examples, each with its weight and its discount, (*M,)."""
    residual: Array
    """Y^T Y - W^T L W of each output, (*M, K): the sum of squared whitened errors of prediction."""


class Innovation(NamedTuple):
    """What a batch has that the head did not predict: everything that evidence and update need.

    >>> innovation(init(1, 1), np.ones((1, 1)), np.ones((1, 1))).gain ** 2  # 1 / S, S = 1 + 1
    array([[0.5]])
    """

    gain: Array
    """H = C^-1 X R, (*M, B, D)."""
    error: Array
    """E = C^-1 (Y - X W), (*M, B, K): the errors of prediction in units of their std (over s), uncorrelated."""
    log_det: Array
    """log det S, (*M,)."""
    weight: float
    """The sum of the weights of the batch."""


class Prediction(NamedTuple):
    """The mean (*M, B, K) and the epistemic variance phi^T R phi (*M, B), in units of the noise variance.

    >>> predict(init(1, 1, ridge=4.0), np.ones((1, 1))).variance
    array([0.25])
    """

    mean: Array
    variance: Array


def init(dim: int, outputs: int, ridge: ArrayLike = 1.0) -> Head:
    """The prior: mean 0, precision ``ridge`` I. An array of ridges gives one member for each.

    >>> init(2, 1, ridge=[0.1, 1.0, 10.0]).covariance.shape
    (3, 2, 2)
    >>> init(2, 1, ridge=0.0)
    Traceback (most recent call last):
    bgd.exact.head.ExactError: ridge=0.0: the prior needs a precision above 0; use a small one, as 1e-6
    """
    precision = np.array(ridge, dtype=np.float64)
    if not (np.all(precision > 0) and np.all(np.isfinite(precision))):
        raise ExactError(f"ridge={precision}: the prior needs a precision above 0; use a small one, as 1e-6")
    if dim < 1 or outputs < 0:
        raise ExactError(f"dim={dim}, outputs={outputs}: a head needs at least one feature, and outputs >= 0")
    members = precision.shape
    return Head(
        mean=np.zeros((*members, dim, outputs)),
        covariance=np.eye(dim) / precision[..., None, None],
        ridge=precision,
        remaining=np.ones(members),
        examples=np.zeros(members),
        residual=np.zeros((*members, outputs)),
    )


def predict(head: Head, phi: Array) -> Prediction:
    """X W, and the diagonal of X R X^T.

    >>> head = update(init(1, 1, ridge=1.0), np.ones((3, 1)), np.ones((3, 1)))
    >>> predict(head, np.ones((1, 1)))
    Prediction(mean=array([[0.75]]), variance=array([0.25]))
    """
    return Prediction(phi @ head.mean, np.einsum("...bd,...bd->...b", phi @ head.covariance, phi))


def innovation(head: Head, phi: Array, targets: Array, weights: Array | None = None) -> Innovation:
    """Compare a batch with its prediction; O(B D^2 + B^3). See :class:`Innovation`.

    Args:
        head: before the batch.
        phi: features X, (B, D) or (*M, B, D).
        targets: Y, (B, K) or (*M, B, K).
        weights: of the examples, (B,): a weight of w counts as w equal examples; any number >= 0.

    Raises:
        ExactError: where shapes do not fit, or a number is not finite: nothing has been learnt.

    >>> innovation(init(1, 1), np.full((1, 1), np.nan), np.ones((1, 1)))
    Traceback (most recent call last):
    bgd.exact.head.ExactError: features contain NaN or infinity in row 0: replace or drop them
    """
    check_batch(head, phi, targets, weights)
    total = float(phi.shape[-2])
    if weights is not None:
        root = np.sqrt(weights)[:, None]
        phi, targets, total = phi * root, targets * root, float(np.sum(weights))
    gain = phi @ head.covariance
    error = targets - phi @ head.mean
    spread = gain @ transpose(phi)
    if phi.shape[-2] == 1:  # a single example needs no factorisation
        std = np.sqrt(spread + 1.0)
        return Innovation(gain / std, error / std, 2.0 * np.log(std[..., 0, 0]), total)
    factor = cholesky(spread + np.eye(phi.shape[-2]))
    log_det = 2.0 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
    return Innovation(np.linalg.solve(factor, gain), np.linalg.solve(factor, error), log_det, total)


def absorb(head: Head, found: Innovation) -> Head:
    """The posterior after a batch, given its innovation: R - H^T H, W + H^T E. Pure.

    >>> head, x, y = init(1, 1), np.ones((1, 1)), np.ones((1, 1))
    >>> absorb(head, innovation(head, x, y)).mean
    array([[0.5]])
    """
    gain = transpose(found.gain)
    return head._replace(
        mean=head.mean + gain @ found.error,
        covariance=head.covariance - gain @ found.gain,
        examples=np.asarray(head.examples + found.weight),
        residual=head.residual + np.square(found.error).sum(-2),
    )


def absorb_(head: Head, found: Innovation) -> Head:
    """:func:`absorb` into the arrays of ``head`` itself, bit for bit, without new memory per member; returns ``head``.

    >>> head = init(1, 1)
    >>> absorb_(head, innovation(head, np.ones((1, 1)), np.ones((1, 1)))) is head
    True
    """
    np.add(head.mean, transpose(found.gain) @ found.error, out=head.mean)
    for index in np.ndindex(head.ridge.shape):
        gain, covariance = found.gain[index], head.covariance[index]
        covariance -= gain.T @ gain
    np.add(head.examples, found.weight, out=head.examples)
    np.add(head.residual, np.square(found.error).sum(-2), out=head.residual)
    return head


def update(head: Head, phi: Array, targets: Array, weights: Array | None = None) -> Head:
    """Learn a batch: the exact posterior given everything so far. Arguments as :func:`innovation`.

    >>> x, y = np.array([[1.0], [2.0]]), np.array([[2.0], [4.0]])
    >>> float(update(init(1, 1, 5.0), x, y).mean[0, 0])  # (2 + 8) / (5 + 1 + 4)
    1.0
    """
    return absorb(head, innovation(head, phi, targets, weights))


def add_outputs(head: Head, extra: int) -> Head:
    """Outputs that appear later, such as new classes: zero columns, as if their targets had been 0 from the start.

    >>> add_outputs(init(3, 2), 1).mean.shape
    (3, 3)
    """
    members = head.ridge.shape
    return head._replace(
        mean=np.concatenate([head.mean, np.zeros((*members, head.mean.shape[-2], extra))], axis=-1),
        residual=np.concatenate([head.residual, np.zeros((*members, extra))], axis=-1),
    )


def state_of(head: Head) -> dict[str, Array]:
    """The arrays by name, copied: a state that survives further learning. ``Head(**state)`` is the way back.

    >>> Head(**state_of(init(1, 1))).mean.shape
    (1, 1)
    """
    return {name: np.array(value) for name, value in head._asdict().items()}


def transpose(matrix: Array) -> Array:
    """The last two axes swapped.

    >>> transpose(np.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    return np.swapaxes(matrix, -1, -2)


def cholesky(matrix: Array, message: str = "the covariance of the predictions is not positive definite") -> Array:
    """The lower triangular factor, or an :class:`ExactError` with the message.

    >>> cholesky(np.array([[4.0]]))
    array([[2.]])
    """
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise ExactError(message) from None


def check_batch(head: Head, phi: Array, targets: Array, weights: Array | None) -> None:
    """Refuse shapes that do not fit and numbers that are not finite.

    >>> check_batch(init(3, 1), np.ones((2, 4)), np.ones((2, 1)), None)
    Traceback (most recent call last):
    bgd.exact.head.ExactError: features of shape (2, 4) and targets of shape (2, 1) do not fit a head of 3 features \
and 1 outputs: (B, 3) and (B, 1) are needed
    """
    dim, outputs = head.mean.shape[-2:]
    if phi.ndim < 2 or phi.shape[-1] != dim or targets.ndim < 2 or targets.shape[-2:] != (phi.shape[-2], outputs):
        raise ExactError(
            f"features of shape {phi.shape} and targets of shape {targets.shape} do not fit a head of {dim} features "
            f"and {outputs} outputs: (B, {dim}) and (B, {outputs}) are needed"
        )
    given: tuple[tuple[str, Any], ...] = (("features", phi), ("targets", targets))
    for name, values in given:
        if not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0][-2])
            raise ExactError(f"{name} contain NaN or infinity in row {row}: replace or drop them")
    if weights is not None and not (
        weights.shape == phi.shape[-2:-1] and np.isfinite(weights).all() and weights.min(initial=0) >= 0
    ):
        raise ExactError(
            f"weights of shape {weights.shape}: one finite number >= 0 for each of {phi.shape[-2]} examples"
        )
