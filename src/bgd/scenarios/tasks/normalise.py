"""The last step of every batch: from pixels to the network's input."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from bgd.data.types import Part
from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.tasks.transforms import Pixels


@dataclass(frozen=True)
class Normalise:
    """(x - mean) / std, where bytes are first scaled to [0, 1]; one value for all channels, or one for each.

    >>> x = Normalise((0.5,), (0.5,))(np.array([[0, 255]], dtype=np.uint8), (1, 1, 2))
    >>> [round(value, 6) for value in x.flatten().tolist()]
    [-1.0, 1.0]
    """

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std):
            raise ScenarioError(f"normalise: {len(self.mean)} means but {len(self.std)} stds")
        if not all(s > 0 and math.isfinite(s) for s in self.std) or not all(map(math.isfinite, self.mean)):
            raise ScenarioError(f"normalise: mean={self.mean}, std={self.std}: stds must be above 0, all finite")

    def __call__(self, pixels: Pixels, shape: tuple[int, int, int]) -> Tensor:
        """A float32 batch (n, C, H, W) in memory of its own."""
        x = torch.from_numpy(pixels.reshape(-1, *shape)).to(torch.float32, copy=True)
        scale, shift = _scale_and_shift(self, 255.0 if pixels.dtype == np.uint8 else 1.0)
        if isinstance(scale, float):
            return torch.add(shift, x, alpha=scale, out=x)
        if len(scale) != shape[0]:
            raise ScenarioError(f"normalise: {len(scale)} means for images of {shape[0]} channels")
        return x.mul_(scale[:, None, None]).add_(shift[:, None, None])


UNIT = Normalise()
PADDED_MNIST = Normalise((0.1000,), (0.2752,))

Normalisation = Normalise | Literal["own"]
"""A fixed normalisation, or the training images' own."""


def fit_normalisation(part: Part) -> Normalise:
    """The normalisation that gives each channel of this part mean 0 and variance 1.

    >>> images = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1)
    >>> fit_normalisation(Part(images, torch.zeros(2, dtype=torch.int64)))
    Normalise(mean=(0.5,), std=(0.5,))
    """
    mean, std = [], []
    for channel in part.images.unbind(1):
        if channel.dtype == torch.uint8:  # from the 256 counts: exact, and no float copy of the data set
            counts, levels = torch.bincount(channel.flatten(), minlength=256).double(), torch.arange(256) / 255
            m = (counts @ levels.double() / counts.sum()).item()
            variance = (counts @ (levels.double() - m) ** 2 / counts.sum()).item()
        else:
            m, variance = channel.double().mean().item(), channel.double().var(correction=0).item()
        mean.append(m)
        std.append(math.sqrt(variance))
    if min(std) == 0:
        raise ScenarioError(f"own statistics: channel {std.index(0)} is constant: normalise with fixed values")
    return Normalise(tuple(mean), tuple(std))


def resolve_normalisation(normalise: Normalisation, train: Part) -> Normalise:
    """A normalisation as it is, or that of the training part for ``"own"``.

    >>> resolve_normalisation(UNIT, Part(torch.zeros(1, 1, 2, 2), torch.tensor([0]))) is UNIT
    True
    """
    if isinstance(normalise, Normalise):
        return normalise
    if normalise != "own":
        raise ScenarioError(f"normalise={normalise!r} is not known: give a Normalise, or 'own'")
    return fit_normalisation(train)


@lru_cache(maxsize=256)
def _scale_and_shift(normalise: Normalise, unit: float) -> tuple[float | Tensor, Tensor]:
    """(x / unit - mean) / std as scale * x + shift; one number where all channels share it."""
    scale = [1 / (unit * s) for s in normalise.std]
    shift = torch.tensor([-m / s for m, s in zip(normalise.mean, normalise.std, strict=True)])
    return (scale[0], shift[0]) if len(scale) == 1 else (torch.tensor(scale), shift)
