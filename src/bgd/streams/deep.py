r"""A small network that BGD trains, one pass a batch, in numpy: the deep member of :class:`bgd.StreamClassifier`.

The update is that of :class:`bgd.BGD` with its defaults, in float32, for an MLP with ReLUs. Every example has noise of
its own, eps_n = eps (s_n r_n^T) with signs s_n and r_n (:mod:`bgd.optim.estimators.perturbation`); with Z = std eps, a
layer is y_n = M x_n + s_n (Z (r_n x_n)), and one backward pass gives E[g] and std E[g eps] = Z dL/dZ. Then

    mean <- mean - std clip(std E[g], 1/4)        std <- min(std exp(-asinh(std E[g eps] / 2)), std_0)

with the examples of small batches counted more. As the other members, it forgets: 1 / std^2 goes back to 1 / std_0^2 at
the rate ``FADING`` an example, which keeps it learning. In torch a step takes 1 to 2 ms, nearly all of it calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bgd.streams.filters import softmax

Array: TypeAlias = NDArray[np.floating[Any]]

HIDDEN = (64, 64)
FADING = 1e-3
BOOST, LARGEST_MOVE, STD_OF_FAN_IN = 256.0, 0.25, 0.5
TABLE = 1 << 18
"""Normals and signs that steps read from, each from a place of its own."""


class Net(NamedTuple):
    """Layer after layer, weights (1 + inputs, outputs), the biases first; :func:`train_` changes them in place."""

    mean: tuple[Array, ...]
    std: tuple[Array, ...]
    ceiling: Array
    """The std at first, of each layer."""


def begin(inputs: int, outputs: int, seed: int) -> Net:
    """A network that has seen nothing: uniform weights within 1 / sqrt(fan-in), as torch's.

    >>> [layer.shape for layer in begin(3, 2, seed=0).mean]
    [(4, 64), (65, 64), (65, 2)]
    """
    sizes = [inputs, *HIDDEN, outputs]
    ceiling = np.array([STD_OF_FAN_IN / math.sqrt(fan_in) for fan_in in sizes[:-1]])
    mean = tuple(
        _uniform(pair[0] + 1, pair[1], bound, [seed, layer])
        for layer, (pair, bound) in enumerate(zip(pairwise(sizes), ceiling / STD_OF_FAN_IN, strict=True))
    )
    return Net(mean, tuple(np.full_like(m, s) for m, s in zip(mean, ceiling, strict=True)), ceiling)


def _uniform(rows: int, columns: int, bound: float, seed: list[int]) -> Array:
    """A row depends on its number alone, not on how many there are."""
    return np.random.default_rng(seed).uniform(-bound, bound, (rows, columns)).astype(np.float32)


def widen(net: Net, inputs: int, outputs: int, seed: int, bias: float) -> Net:
    """More inputs, and more outputs: zeros, with a bias.

    >>> net = widen(begin(3, 2, seed=0), 4, 5, seed=0, bias=-1.0)
    >>> [layer.shape for layer in net.mean], net.mean[-1][0, 2:].tolist()
    ([(5, 64), (65, 64), (65, 5)], [-1.0, -1.0, -1.0])
    """
    first = _uniform(inputs + 1, HIDDEN[0], net.ceiling[0] / STD_OF_FAN_IN, [seed, 0])
    first[: len(net.mean[0])] = net.mean[0]
    new = np.zeros((len(net.mean[-1]), outputs - net.mean[-1].shape[1]), np.float32)
    new[0] = bias
    mean = (first, *net.mean[1:-1], np.concatenate([net.mean[-1], new], 1))
    std = tuple(np.full_like(m, s) for m, s in zip(mean, net.ceiling, strict=True))
    for now, before in zip(std, net.std, strict=True):
        now[: before.shape[0], : before.shape[1]] = before
    return Net(mean, std, net.ceiling)


def predict(net: Net, x: Array) -> Array:
    """The probabilities (B, C) under the mean weights, of inputs that begin with a 1.

    >>> predict(begin(3, 2, seed=0), np.ones((5, 4))).shape
    (5, 2)
    """
    x = x.astype(np.float32)
    for mean in net.mean[:-1]:
        x = _activated(x @ mean)
    return softmax((x @ net.mean[-1]).astype(np.float64))


def _activated(y: Array) -> Array:
    """The inputs of the next layer: a 1, then the positive parts."""
    x = np.empty((y.shape[0], y.shape[1] + 1), np.float32)
    x[:, 0] = 1.0
    np.maximum(y, 0.0, out=x[:, 1:])
    return x


class _Layer(NamedTuple):
    """What a layer saw and drew: x, r x, r, s and Z."""

    x: Array
    turned: Array
    r: Array
    s: Array
    z: Array


def train_(net: Net, x: Array, labels: Array, weights: Array, step: int) -> None:
    """One step of BGD in place, on inputs that begin with a 1, one-hot ``labels`` and ``weights``; ``step`` draws noise.

    >>> net = begin(1, 2, seed=0)
    >>> x, labels = np.array([[1.0, -1.0], [1.0, 1.0]] * 8), np.eye(2)[[0, 1] * 8]
    >>> for step in range(60):
    ...     train_(net, x, labels, np.ones(16), step)
    >>> predict(net, x[:2]).argmax(1).tolist()
    [0, 1]
    """
    layers = []
    y, x = x, x.astype(np.float32)
    for layer, (mean, std, drawn) in enumerate(zip(net.mean, net.std, _noise(net, len(x), step), strict=True)):
        x = x if layer == 0 else _activated(y)
        eps, r, s = drawn
        layers.append(_Layer(x, r * x, r, s, eps * std))
        y = x @ mean + s * (layers[-1].turned @ layers[-1].z)
    counted = max(1.0, BOOST / (max(len(x), 5) + 3))
    delta = ((softmax(y) - labels) * (counted * weights)[:, None]).astype(np.float32)
    kept = (1.0 - FADING) ** len(x)
    for mean, std, ceiling, seen in reversed(list(zip(net.mean, net.std, net.ceiling.tolist(), layers, strict=True))):
        turned_delta = seen.s * delta
        e_g, in_stds = seen.x.T @ delta, (seen.turned.T @ turned_delta) * seen.z
        back = delta @ mean.T + seen.r * (turned_delta @ seen.z.T)
        delta = back[:, 1:] * (seen.x[:, 1:] > 0)
        move_(mean, std, e_g, in_stds)
        _forget_(std, ceiling, kept)


def _noise(net: Net, rows: int, step: int) -> Iterator[tuple[Array, Array, Array]]:
    """Eps, r and s of each layer, from places in the tables that depend on the step."""
    normals, signs = _tables()
    for layer, mean in enumerate(net.mean):
        place = (step * 0x9E3779B1 + layer * 0x85EBCA6B) % (1 << 32)
        at = place % (len(normals) - mean.size)
        inputs, outputs = rows * mean.shape[0], rows * mean.shape[1]
        sign = signs[place % (len(signs) - inputs - outputs) :]
        eps = normals[at : at + mean.size].reshape(mean.shape)
        yield eps, sign[:inputs].reshape(rows, -1), sign[inputs : inputs + outputs].reshape(rows, -1)


def move_(mean: Array, std: Array, e_g: Array, in_stds: Array) -> None:
    """BGD's update in place, from E[g], which is used up, and std E[g eps], which is too.

    >>> mean, std = np.zeros(1, np.float32), np.full(1, 0.5, np.float32)
    >>> move_(mean, std, np.full(1, 0.2, np.float32), np.full(1, 1.0, np.float32))
    >>> mean.round(4), std.round(4)
    (array([-0.05], dtype=float32), array([0.309], dtype=float32))
    """
    e_g *= std
    np.minimum(np.maximum(e_g, -LARGEST_MOVE, out=e_g), LARGEST_MOVE, out=e_g)
    e_g *= std
    mean -= e_g
    in_stds *= 0.5
    np.minimum(np.maximum(in_stds, -1e3, out=in_stds), 1e3, out=in_stds)
    # exp(-asinh(y)) = 1 / (sqrt(1 + y^2) + y); a negative y in float32 bears it as far as it is cut off
    std /= np.sqrt(1.0 + in_stds * in_stds) + in_stds


def _forget_(std: Array, ceiling: float, kept: float) -> None:
    """The std, at most the first one, after its precision has faded towards that of the first."""
    np.minimum(std, ceiling, out=std)
    precision = kept / (std * std)
    precision += (1.0 - kept) / ceiling**2
    np.divide(1.0, np.sqrt(precision), out=std)


@cache
def _tables() -> tuple[Array, Array]:
    rng = np.random.default_rng(20180327)
    return rng.standard_normal(TABLE, dtype=np.float32), (2.0 * rng.integers(0, 2, TABLE) - 1.0).astype(np.float32)
