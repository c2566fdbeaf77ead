"""How probable a head found a batch before learning it: the weight of one model beside another.

By the chain rule the log evidences of all batches, each under the head before it, add up to the evidence of the whole
stream, whatever the batch size. Members of a head are compared by theirs: no setting has to be guessed.
"""

from __future__ import annotations

import math

import numpy as np

from bgd.exact.head import Array, Head, Innovation


def gaussian(found: Innovation, noise: float = 1.0) -> Array:
    """The log density of a batch, of all outputs together, with known noise variance s^2; (*M,).

    log p(Y) = - |E|^2 / (2 s^2) - K/2 (log det S + B log(2 pi s^2)), with the whitened errors E of the batch.

    >>> from bgd.exact.head import init, innovation
    >>> found = innovation(init(1, 1), np.ones((1, 1)), np.zeros((1, 1)))
    >>> round(float(gaussian(found)), 4)  # y = 0 under N(0, 2)
    -1.2655
    """
    rows, outputs = found.error.shape[-2:]
    squares = np.square(found.error).sum((-2, -1))
    scale = found.log_det + rows * math.log(2 * math.pi * noise)
    result: Array = -0.5 * (squares / noise + outputs * scale)
    return result


def student_t(head: Head, found: Innovation, shape: float = 1.0, rate: float = 1.0) -> Array:
    """The log density of a batch with unknown noise variance, of each output on its own, (*M, K): sum over the last.

    The normal-inverse-gamma model, s^2 ~ InverseGamma(shape, rate) of each output: with a = shape + examples / 2,
    b = rate + residual / 2 before the batch, and q = |E|^2,

        log p(Y) = lgamma(a + B/2) - lgamma(a) - B/2 log(2 pi b) - (a + B/2) log(1 + q / (2 b)) - log det S / 2

    >>> from bgd.exact.head import init, innovation
    >>> head = init(1, 1)
    >>> found = innovation(head, np.ones((1, 1)), np.zeros((1, 1)))
    >>> student_t(head, found).round(4)  # y = 0 under Student's t with 2 degrees of freedom and scale^2 2
    array([-1.3863])
    """
    n = found.weight
    a = (shape + head.examples / 2)[..., None]
    b = rate + np.maximum(head.residual, 0.0) / 2
    squares = np.square(found.error).sum(-2)
    gammas = _lgamma(a + n / 2) - _lgamma(a)
    result: Array = (
        gammas
        - n / 2 * np.log(2 * math.pi * b)
        - (a + n / 2) * np.log1p(squares / (2 * b))
        - found.log_det[..., None] / 2
    )
    return result


def noise_variance(head: Head, shape: float = 1.0, rate: float = 1.0) -> Array:
    """The noise variance s^2 of each output, (*M, K): the mean b / (a - 1) of its posterior, or b / a where a <= 1.

    >>> from bgd.exact.head import init
    >>> noise_variance(init(1, 1), shape=3.0, rate=4.0)
    array([2.])
    """
    a = (shape + head.examples / 2)[..., None]
    b = rate + np.maximum(head.residual, 0.0) / 2
    result: Array = b / np.where(a > 1, a - 1, a)
    return result


def _lgamma(values: Array) -> Array:
    return np.reshape([math.lgamma(v) for v in np.ravel(values)], np.shape(values))
