r"""A small network that BGD trains, one pass a batch, in numpy: the deep member of :class:`bgd.StreamClassifier`.

The update is that of :class:`bgd.BGD`, in float32, for an MLP with ReLUs, with std_0 = 0.5 / sqrt(fan-in) and moves of
at most a quarter of a std. Every example has noise of its own, eps_n = eps (s_n r_n^T) with signs s_n and r_n
(:mod:`bgd.optim.estimators.perturbation`); with Z = std eps, a layer is y_n = M x_n + s_n (Z (r_n x_n)), and one
backward pass gives E[g] and std E[g eps] = Z dL/dZ. Then

    mean <- mean - std clip(std E[g], 1/4)        std <- min(std exp(-asinh(std E[g eps] / 2)), std_0)

with the examples of small batches counted more. As the other members, it forgets: 1 / std^2 goes back to 1 / std_0^2 at
the rate ``FADING`` an example, which keeps it learning. In torch a batch takes about 2 ms, nearly all of it calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bgd.streams.filters import softmax

Array: TypeAlias = NDArray[np.floating[Any]]

HIDDEN = (64, 64)
FADING = 1e-3
BOOST, LARGEST_MOVE, STD_OF_FAN_IN = 256.0, 0.25, 0.5
TABLE = 1 << 16
"""The least number of normals and of signs that steps read from, each from a place of its own."""


class Net(NamedTuple):
    """All weights in one row: layers (1 + inputs, outputs), biases first; :func:`train_` changes it in place."""

    sizes: tuple[int, ...]
    """Inputs, hidden units and outputs."""
    mean: Array
    std: Array
    ceiling: Array
    """The std at first."""


def layers(row: Array, sizes: Sequence[int]) -> list[Array]:
    """Views of a row as layers.

    >>> [layer.shape for layer in layers(np.zeros(11), [1, 3, 1])[:1]]
    [(2, 3)]
    """
    return [row[own].reshape(-1, outputs) for own, outputs in _spans(tuple(sizes))]


@lru_cache(maxsize=64)
def _spans(sizes: tuple[int, ...]) -> list[tuple[slice, int]]:
    """Where each layer is, and its outputs."""
    ends = list(accumulate((i + 1) * o for i, o in pairwise(sizes)))
    return [(slice(a, b), o) for a, b, o in zip([0, *ends], ends, sizes[1:], strict=False)]


def deep_sizes(inputs: int, outputs: int) -> tuple[int, ...]:
    """Inputs, hidden units and outputs.

    >>> deep_sizes(3, 2)
    (3, 64, 64, 2)
    """
    return (inputs, *HIDDEN, outputs)


def begin(inputs: int, outputs: int, seed: int) -> Net:
    """A network that has seen nothing: uniform weights within 1 / sqrt(fan-in), as torch's.

    >>> begin(3, 2, seed=0).sizes
    (3, 64, 64, 2)
    """
    sizes = deep_sizes(inputs, outputs)
    mean, bounds = [], []
    for layer, (i, o) in enumerate(pairwise(sizes)):
        mean.append(_uniform(i + 1, o, 1.0 / math.sqrt(i), [seed, layer]).ravel())
        bounds.append(np.full_like(mean[-1], STD_OF_FAN_IN / math.sqrt(i)))
    ceiling = np.concatenate(bounds)
    return Net(sizes, np.concatenate(mean), ceiling.copy(), ceiling)


def _uniform(rows: int, columns: int, bound: float, seed: list[int]) -> Array:
    """A row depends on its number alone, not on how many there are."""
    return np.random.default_rng(seed).uniform(-bound, bound, (rows, columns)).astype(np.float32)


def widen(net: Net, inputs: int, outputs: int, seed: int, bias: float) -> Net:
    """More inputs, and more outputs: zeros, with a bias.

    >>> net = widen(begin(3, 2, seed=0), 4, 5, seed=0, bias=-1.0)
    >>> net.sizes, layers(net.mean, net.sizes)[-1][0, 2:].tolist()
    ((4, 64, 64, 5), [-1.0, -1.0, -1.0])
    """
    first = float(net.ceiling[0])
    sizes = (inputs, *net.sizes[1:-1], outputs)
    mean, *last = layers(net.mean, net.sizes)
    fresh = _uniform(inputs + 1, net.sizes[1], first / STD_OF_FAN_IN, [seed, 0])
    fresh[: len(mean)] = mean
    last[-1] = np.pad(last[-1], ((0, 0), (0, outputs - net.sizes[-1])))
    last[-1][0, net.sizes[-1] :] = bias
    ceiling = [np.full_like(w, c.flat[0]) for w, c in zip([fresh, *last], layers(net.ceiling, net.sizes), strict=True)]
    std = [c.copy() for c in ceiling]
    for now, before in zip(std, layers(net.std, net.sizes), strict=True):
        now[: before.shape[0], : before.shape[1]] = before
    return Net(sizes, *(np.concatenate([part.ravel() for part in parts]) for parts in ([fresh, *last], std, ceiling)))


def predict(net: Net, x: Array) -> Array:
    """The probabilities (B, C) under the mean weights, of inputs that begin with a 1.

    >>> predict(begin(3, 2, seed=0), np.ones((5, 4))).shape
    (5, 2)
    """
    x = x.astype(np.float32)
    *hidden, last = layers(net.mean, net.sizes)
    for mean in hidden:
        x = _activated(x @ mean)
    return softmax((x @ last).astype(np.float64))


def _activated(y: Array) -> Array:
    """The inputs of the next layer: a 1, then the positive parts."""
    x = np.empty((y.shape[0], y.shape[1] + 1), np.float32)
    x[:, 0] = 1.0
    np.maximum(y, 0.0, out=x[:, 1:])
    return x


def train_(net: Net, x: Array, labels: Array, weights: Array, step: int) -> None:
    """One step of BGD in place, on inputs that begin with a 1 and one-hot ``labels``; ``step`` draws the noise.

    >>> net = begin(1, 2, seed=0)
    >>> x, labels = np.array([[1.0, -1.0], [1.0, 1.0]] * 8), np.eye(2)[[0, 1] * 8]
    >>> for step in range(60):
    ...     train_(net, x, labels, np.ones(16), step)
    >>> predict(net, x[:2]).argmax(1).tolist()
    [0, 1]
    """
    eps, signs = noise(net, len(x), step)
    counted = max(1.0, BOOST / (max(len(x), 5) + 3))
    move_(net.mean, net.std, *expectations(net, x, labels, counted * weights, net.std * eps, signs))
    np.minimum(net.std, net.ceiling, out=net.std)
    kept = (1.0 - FADING) ** len(x)
    ratio = net.std / net.ceiling
    ratio *= ratio
    ratio *= 1.0 - kept
    ratio += kept
    np.divide(net.std, np.sqrt(ratio, out=ratio), out=net.std)  # 1 / sqrt(kept / std^2 + (1 - kept) / ceiling^2)


Signs: TypeAlias = list[tuple[Array, Array]]


def noise(net: Net, rows: int, step: int) -> tuple[Array, Signs]:
    """Eps, and r (B, 1 + inputs) and s (B, outputs) of each layer, from places in tables that depend on the step.

    >>> eps, signs = noise(begin(3, 2, seed=0), 5, step=1)
    >>> eps.shape, [(r.shape, s.shape) for r, s in signs][0]
    ((4546,), ((5, 4), (5, 64)))
    """
    needed = rows * (sum(net.sizes) * 2 + len(net.sizes))
    normals, both = _tables(max(TABLE, 1 << (4 * max(len(net.mean), needed)).bit_length()))
    place, drawn = step * 0x9E3779B1 % (1 << 32), []
    at = place % (len(normals) - len(net.mean))
    eps = normals[at : at + len(net.mean)]
    at = place % (len(both) - needed)
    for i, o in pairwise(net.sizes):
        drawn.append((both[at : (at := at + rows * (i + 1))], both[at : (at := at + rows * o)]))
    return eps, [(r.reshape(rows, -1), s.reshape(rows, -1)) for r, s in drawn]


def expectations(net: Net, x: Array, labels: Array, weights: Array, z: Array, signs: Signs) -> tuple[Array, Array]:
    """E[g] and std E[g eps] of the summed, weighted log-loss, from one pass with the noise Z = std eps.

    >>> net = begin(1, 2, seed=0)
    >>> eps, signs = noise(net, 3, step=1)
    >>> e_g, _ = expectations(net, np.ones((3, 2)), np.eye(2)[[0, 1, 1]], np.ones(3), net.std * eps, signs)
    >>> e_g.shape == net.mean.shape
    True
    """
    means, perturbations = layers(net.mean, net.sizes), layers(z, net.sizes)
    y: Array = x
    seen: list[tuple[Array, Array]] = []
    for mean, own, (r, s) in zip(means, perturbations, signs, strict=True):
        x = _activated(y) if seen else x.astype(np.float32)
        seen.append((x, r * x))
        y = x @ mean + s * (seen[-1][1] @ own)
    delta: Array = ((softmax(y) - labels) * weights[:, None]).astype(np.float32)
    e_g, in_stds = np.empty_like(net.mean), np.empty_like(net.mean)
    slopes = zip(layers(e_g, net.sizes), layers(in_stds, net.sizes), strict=True)
    for layer, (g, g_z) in reversed(list(enumerate(slopes))):
        (x, turned), (r, s) = seen[layer], signs[layer]
        turned_delta = s * delta
        np.matmul(x.T, delta, out=g)
        np.matmul(turned.T, turned_delta, out=g_z)
        if layer:
            back = delta @ means[layer].T + r * (turned_delta @ perturbations[layer].T)
            delta = back[:, 1:] * (x[:, 1:] > 0)
    in_stds *= z
    return e_g, in_stds


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


@lru_cache(maxsize=4)
def _tables(size: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(20180327)
    normals = rng.standard_normal(size, dtype=np.float32)
    both = np.unpackbits(np.frombuffer(rng.bytes(size // 8), np.uint8)).astype(np.float32)
    both *= 2.0
    both -= 1.0
    return normals, both
