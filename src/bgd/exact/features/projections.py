"""Features of vectors: the inputs themselves, random Fourier features and random ReLU units."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from bgd.exact.features.base import Features
from bgd.exact.head import ExactError
from bgd.validation import check_whole

PAIRS = 512
"""Inputs between which distances are measured."""
SIDES = (0.25, 0.7)
"""Smallest and largest side of a window, as parts of the shorter side of an image."""


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

    With ``windows`` each unit sees a square of an image, of ``SIDES`` of its shorter side, somewhere: weights elsewhere
    are 0, and d is the median distance within that square. The kernel is then a mean over windows, under which images
    that agree in parts are alike.
    """

    weight: Tensor
    bias: Tensor
    mean: Tensor
    distance: Tensor

    def __init__(
        self, shape: Sequence[int], units: int, scales: Sequence[float], seed: int, windows: bool = False
    ) -> None:
        super().__init__()
        check_whole(1, units=units)
        if windows and len(shape) != 3:
            raise ExactError(f"windows need images (channels, height, width), but the shape is {tuple(shape)}")
        self.dim, self.windows, self.seed = units + 1, windows, seed
        inputs = math.prod(shape)
        generator = torch.Generator().manual_seed(seed)
        weight = torch.randn(units, inputs, generator=generator)
        if windows:
            weight *= random_windows(shape, units, generator)
        lengths = torch.tensor(list(scales)).repeat(-(-units // len(scales)))[:units]
        self.register_buffer("weight", weight / lengths[:, None])
        self.register_buffer("bias", torch.rand(units, generator=generator))
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("distance", torch.ones(units if windows else 1))

    def adapt(self, x: Tensor) -> None:
        """The mean of the first inputs and the median distances between them, of all pixels or of each window."""
        x = x.flatten(1)
        self.mean.copy_(x.mean(0))
        squares = self._window_distances(x) if self.windows else torch.pdist(x[:PAIRS].double())[:, None].square()
        squares[squares == 0] = torch.nan  # equal inputs say nothing about lengths
        if not squares.isnan().all():
            smallest = 0.02 * squares.nanmean()  # of a window at an edge where hardly anything happens
            self.distance.copy_((squares.nanmedian(0).values.nan_to_num(0) + smallest * self.windows).sqrt())

    def _window_distances(self, x: Tensor) -> Tensor:
        """Squared distances between random pairs of inputs in the window of each unit, (pairs, units)."""
        generator = torch.Generator().manual_seed(self.seed)
        order = torch.randperm(len(x), generator=generator).to(x.device)
        differences = x[order[:PAIRS]] - x[order.roll(1)[:PAIRS]]
        return differences.square() @ (self.weight != 0).T.to(x.dtype)

    def project(self, x: Tensor) -> Tensor:
        """The projections Omega (x - mean) / d, (B, units)."""
        return torch.nn.functional.linear(x.flatten(1) - self.mean, self.weight / self.distance[:, None])


def random_windows(shape: Sequence[int], count: int, generator: torch.Generator) -> Tensor:
    """Masks of random squares with sides of ``SIDES`` of the shorter side of an image, (count, inputs).

    >>> random_windows((1, 8, 8), 3, torch.Generator().manual_seed(0)).reshape(3, 8, 8).sum((1, 2)).sqrt()
    tensor([6., 6., 5.])
    """
    _, height, width = shape
    smallest, largest = (max(1, round(part * min(height, width))) for part in SIDES)
    side = torch.randint(smallest, largest + 1, (count,), generator=generator)
    masks = []
    for length in (height, width):
        start = (torch.rand(count, generator=generator) * (length - side + 1)).long()[:, None]
        places = torch.arange(length)
        masks.append((places >= start) & (places < start + side[:, None]))
    square = masks[0][:, None, :, None] & masks[1][:, None, None, :]
    return square.expand(count, *shape).flatten(1)


class Fourier(Projection):
    """phi(x) = sqrt(2 / D) cos(Omega x + b): the head is then a Gaussian process with a sum of Gaussian kernels.

    Rahimi & Recht (2007): phi(x) . phi(x') tends to the mean over scales of exp(-|x - x'|^2 / (2 (scale d)^2)).

    Args:
        shape: of one input.
        units: D.
        scales: length scales in units of the median distance d between the first inputs.
        seed: of Omega and b.
        windows: each unit sees a part of an image, see :class:`Projection`.

    >>> features = Fourier((2,), units=20_000, scales=(1.0,)).fit(torch.tensor([[0.0, 0.0], [0.0, 3.0]]))
    >>> one, other = features(torch.tensor([[0.0, 0.0], [0.0, 3.0]]))[:, :-1]
    >>> abs(float(one @ other) - math.exp(-0.5)) < 0.02
    True
    """

    def __init__(
        self,
        shape: Sequence[int],
        units: int = 2000,
        scales: Sequence[float] = (1.0,),
        seed: int = 0,
        windows: bool = False,
    ) -> None:
        super().__init__(shape, units, scales, seed, windows)

    def transform(self, x: Tensor) -> Tensor:
        """The waves."""
        return self.project(x).add_(self.bias, alpha=2 * math.pi).cos_().mul_(math.sqrt(2 / len(self.bias)))


class RandomReLU(Projection):
    """phi(x) = max(0, Omega x + b) / sqrt(D): a hidden layer that is not trained.

    Args:
        shape: of one input.
        units: D.
        seed: of Omega and b.
        windows: each unit sees a part of an image, see :class:`Projection`.

    >>> RandomReLU((2,), units=8).fit(torch.eye(2))(torch.eye(2)).min() >= 0
    tensor(True)
    """

    def __init__(self, shape: Sequence[int], units: int = 2000, seed: int = 0, windows: bool = False) -> None:
        super().__init__(shape, units, (0.5,), seed, windows)

    def transform(self, x: Tensor) -> Tensor:
        """The activations; biases are uniform in [-1, 1]."""
        return self.project(x).add_(2 * self.bias - 1).relu_().mul_(math.sqrt(1 / len(self.bias)))
