"""Forgetting with the exact head: chosen examples exactly, or the past as a whole by a discount towards the prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bgd.exact.head import Array, ExactError, Head, check_batch, cholesky, transpose


def forget(head: Head, phi: Array, targets: Array, weights: Array | None = None) -> Head:
    """Unlearn examples that were learnt: the posterior as if they had never been seen, to rounding.

    L - X^T X by Woodbury: S = I - X R X^T = C C^T, R + H^T H, W - H^T E, with H = C^-1 X R, E = C^-1 (Y - X W).
    Where it was discounted since, give what is left of its weight as ``weights``.

    >>> from bgd.exact.head import init, update
    >>> head, x, y = init(1, 1), np.ones((1, 1)), np.ones((1, 1))
    >>> forget(update(head, x, y), x, y).covariance.round(12)
    array([[1.]])
    >>> forget(head, 2 * x, y)
    Traceback (most recent call last):
    bgd.exact.head.ExactError: these examples are not part of what the head has learnt, so they cannot be forgotten
    """
    check_batch(head, phi, targets, weights)
    root: Array = np.ones((phi.shape[-2], 1)) if weights is None else np.sqrt(weights)[:, None]
    phi, targets = phi * root, targets * root
    gain: Array = phi @ head.covariance
    unknown = "these examples are not part of what the head has learnt, so they cannot be forgotten"
    factor = cholesky(np.eye(phi.shape[-2]) - gain @ transpose(phi), unknown)
    gain, error = np.linalg.solve(factor, gain), np.linalg.solve(factor, targets - phi @ head.mean)
    return head._replace(
        mean=head.mean - transpose(gain) @ error,
        covariance=head.covariance + transpose(gain) @ gain,
        examples=np.asarray(head.examples - float(np.sum(root**2))),
        residual=head.residual - np.square(error).sum(-2),
    )


def fade(head: Head, gamma: ArrayLike) -> Head:
    """Multiply L, B and all sums by gamma, prior included: R / gamma, W unchanged. O(D^2).

    Called once per batch it gives every example the weight gamma^age, as in recursive least squares. The prior fades
    too: call :func:`restore` now and then, at the latest when ``head.remaining`` falls below, say, 0.5.

    >>> from bgd.exact.head import init
    >>> fade(init(1, 1), 0.5).covariance
    array([[2.]])
    """
    factor = _discount(gamma)
    return head._replace(
        covariance=head.covariance / factor[..., None, None],
        remaining=np.asarray(head.remaining * factor),
        examples=np.asarray(head.examples * factor),
        residual=head.residual * factor[..., None],
    )


def restore(head: Head) -> Head:
    """Give back the part of the prior that :func:`fade` took: L + c I with c = (1 - remaining) ridge. O(D^3).

    R <- R (I + c R)^-1 and W <- (I + c R)^-1 W. The eigenvalues of I + c R lie in [1, 1 / remaining], so the solve
    loses no digits. ``residual`` grows by c W_old^T W_new, for each output.

    >>> from bgd.exact.head import init
    >>> restore(fade(init(1, 1), 0.25)).covariance
    array([[1.]])
    """
    missing = ((1.0 - head.remaining) * head.ridge)[..., None, None]
    system = np.eye(head.covariance.shape[-1]) + missing * head.covariance
    mean, covariance = np.linalg.solve(system, head.mean), np.linalg.solve(system, head.covariance)
    return head._replace(
        mean=mean,
        covariance=(covariance + transpose(covariance)) / 2,
        remaining=np.ones_like(head.remaining),
        residual=head.residual + missing[..., 0] * (head.mean * mean).sum(-2),
    )


def discount(head: Head, gamma: ArrayLike) -> Head:
    """Forget exponentially, towards the prior: L0 + gamma (L - L0), gamma B; exact, O(D^3) (see :func:`restore`).

    A stream calls ``discount(head, gamma**n)`` after every n examples (the weight of each is then gamma^age, with the
    age rounded up to blocks), or :func:`fade` after every batch and :func:`restore` after every n examples.

    >>> from bgd.exact.head import init, update
    >>> head = update(init(1, 1), np.ones((1, 1)), np.ones((1, 1)))  # L = 1 + 1, B = 1
    >>> head = discount(head, 0.5)  # L = 1 + 0.5, B = 0.5
    >>> round(float(head.mean[0, 0]), 12), round(float(head.covariance[0, 0]), 12)
    (0.333333333333, 0.666666666667)
    """
    return restore(fade(head, gamma))


def _discount(gamma: ArrayLike) -> Array:
    factor = np.asarray(gamma, dtype=np.float64)
    if not (np.all(factor > 0) and np.all(factor <= 1)):
        raise ExactError(f"gamma={factor}: a discount lies in (0, 1]; 1 forgets nothing")
    return factor
