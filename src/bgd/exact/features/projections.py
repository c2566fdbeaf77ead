"""Features of vectors: the inputs themselves, random Fourier features and random ReLU units."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from bgd.exact.features.base import Features
from bgd.validation import check_whole

PAIRS = 512
"""Inputs between which distances are measured."""


class Identity(Features):
    """phi(x) = x, flattened: a linear model.

    Args:
        shape: of one input.

    >>> Identity((1, 4, 4)).dim
    17
    """

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.dim = math.prod(shape) + 1

    def transform(self, x: Tensor) -> Tensor:
        """The inputs."""
        return x.flatten(1)


class Projection(Features):
    """Random directions over centred inputs, whose lengths follow the distances between the first inputs.

    With d the median distance between two of them, a unit's weights are N(0, 1 / (scale d)^2): the scale is a length
    scale, in units of d. Units share several scales out, so that smooth and detailed functions are both within reach.
    """

    weight: Tensor
    bias: Tensor
    mean: Tensor
    distance: Tensor

    def __init__(self, shape: Sequence[int], units: int, scales: Sequence[float], seed: int) -> None:
        super().__init__()
        check_whole(1, units=units)
        self.dim = units + 1
        inputs = math.prod(shape)
        generator = torch.Generator().manual_seed(seed)
        weight = torch.randn(units, inputs, generator=generator)
        lengths = torch.tensor(list(scales)).repeat(-(-units // len(scales)))[:units]
        self.register_buffer("weight", weight / lengths[:, None])
        self.register_buffer("bias", torch.rand(units, generator=generator))
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("distance", torch.ones(()))

    def adapt(self, x: Tensor) -> None:
        """The mean of the first inputs and the median distance between them."""
        x = x.flatten(1)[:PAIRS]
        self.mean.copy_(x.mean(0))
        distances = torch.pdist(x.double())
        distances = distances[distances > 0]
        if len(distances):
            self.distance.copy_(distances.median())

    def project(self, x: Tensor) -> Tensor:
        """The projections Omega (x - mean) / d, (B, units)."""
        return torch.nn.functional.linear((x.flatten(1) - self.mean) / self.distance, self.weight)


class Fourier(Projection):
    """phi(x) = sqrt(2 / D) cos(Omega x + b): the head is then a Gaussian process with a sum of Gaussian kernels.

    Rahimi & Recht (2007): phi(x) . phi(x') tends to the mean over scales of exp(-|x - x'|^2 / (2 (scale d)^2)).

    Args:
        shape: of one input.
        units: D.
        scales: length scales in units of the median distance d between the first inputs.
        seed: of Omega and b.

    >>> features = Fourier((2,), units=20_000, scales=(1.0,)).fit(torch.tensor([[0.0, 0.0], [0.0, 3.0]]))
    >>> one, other = features(torch.tensor([[0.0, 0.0], [0.0, 3.0]]))[:, :-1]
    >>> abs(float(one @ other) - math.exp(-0.5)) < 0.02
    True
    """

    def __init__(
        self, shape: Sequence[int], units: int = 2000, scales: Sequence[float] = (1.0,), seed: int = 0
    ) -> None:
        super().__init__(shape, units, scales, seed)

    def transform(self, x: Tensor) -> Tensor:
        """The waves."""
        return self.project(x).add_(self.bias, alpha=2 * math.pi).cos_().mul_(math.sqrt(2 / len(self.bias)))


class RandomReLU(Projection):
    """phi(x) = max(0, Omega x + b) / sqrt(D): a hidden layer that is not trained.

    Args:
        shape: of one input.
        units: D.
        seed: of Omega and b.

    >>> RandomReLU((2,), units=8).fit(torch.eye(2))(torch.eye(2)).min() >= 0
    tensor(True)
    """

    def __init__(self, shape: Sequence[int], units: int = 2000, seed: int = 0) -> None:
        super().__init__(shape, units, (0.5,), seed)

    def transform(self, x: Tensor) -> Tensor:
        """The activations; biases are uniform in [-1, 1]."""
        return self.project(x).add_(2 * self.bias - 1).relu_().mul_(math.sqrt(1 / len(self.bias)))
