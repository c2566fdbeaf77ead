"""Two exact heads that learnt different data become the head that learnt both."""

from __future__ import annotations

import numpy as np

from bgd.exact.forgetting import restore
from bgd.exact.head import ExactError, Head, transpose


def merge(one: Head, other: Head) -> Head:
    """The head that has seen the data of both: L1 + L2 - L0, B1 + B2; exact, O(D^3).

    >>> from bgd.exact.head import init, update
    >>> x, y = np.ones((1, 1)), np.ones((1, 1))
    >>> both = merge(update(init(1, 1), x, y), update(init(1, 1), x, -y))
    >>> float(both.mean[0, 0]), round(float(both.covariance[0, 0]), 12)
    (0.0, 0.333333333333)
    """
    if one.mean.shape != other.mean.shape or not np.array_equal(one.ridge, other.ridge):
        raise ExactError(
            f"heads of shapes {one.mean.shape} and {other.mean.shape}, ridges {one.ridge} and {other.ridge} cannot "
            "merge: both need the same features, outputs and prior"
        )
    one, other = restore(one), restore(other)
    eye = np.eye(one.covariance.shape[-1])
    precision = [np.linalg.solve(head.covariance, eye) for head in (one, other)]
    sums = [p @ head.mean for p, head in zip(precision, (one, other), strict=True)]
    total = precision[0] + precision[1] - one.ridge[..., None, None] * eye
    covariance = np.linalg.inv((total + transpose(total)) / 2)
    mean = covariance @ (sums[0] + sums[1])
    # Y^T Y = residual + W^T L W of each
    square = sum(head.residual + (head.mean * s).sum(-2) for head, s in zip((one, other), sums, strict=True))
    return one._replace(
        mean=mean,
        covariance=(covariance + transpose(covariance)) / 2,
        examples=np.asarray(one.examples + other.examples),
        residual=square - (mean * (sums[0] + sums[1])).sum(-2),
    )
