"""What happens to pixels on their way from a data set into a batch: changes that make a task, then normalisation.

A change works on flat images (n, D) of any number type and keeps the type, so that bytes stay bytes until the last
step turns them into numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from bgd.data.types import Part
from bgd.scenarios.errors import ScenarioError

Pixels = NDArray[np.uint8] | NDArray[np.float32]
Rows = NDArray[np.intp]


class Change(Protocol):
    """Turns images into those of a task. ``rows`` says which of the data set's images they are."""

    def __call__(self, images: Pixels, rows: Rows) -> Pixels:
        """Changed images (n, D), new memory."""


@dataclass(frozen=True, eq=False)
class Permute:
    """The pixels of every image in another, fixed order.

    >>> Permute(np.array([2, 0, 1]))(np.array([[7, 8, 9]], dtype=np.uint8), np.array([0])).tolist()
    [[9, 7, 8]]
    """

    order: NDArray[np.intp]

    def __call__(self, images: Pixels, rows: Rows) -> Pixels:
        """Pixel i of the result is pixel ``order[i]`` of the image."""
        del rows
        return images.take(self.order, axis=1)


@dataclass(frozen=True)
class Rotate:
    """Images turned counter-clockwise about their middle, bilinear, with zeros coming in at the corners.

    >>> image = np.array([[1, 2, 3, 4]], dtype=np.uint8)
    >>> Rotate(90, (1, 2, 2))(image, np.array([0])).tolist()
    [[2, 4, 1, 3]]
    """

    degrees: float
    shape: tuple[int, int, int]

    def __post_init__(self) -> None:
        """Plain features, kept as images one pixel high, would leave their frame."""
        if min(self.shape[1:]) < 2:
            raise ScenarioError(
                f"data of shape {self.shape} cannot be turned, since it is no image: permute it, blend it into other "
                "data, or write a Drift of its own"
            )

    def __call__(self, images: Pixels, rows: Rows) -> Pixels:
        """All images in one pass: they share one sampling grid, as channels of some large images.

        Torch gives a thread one of those, and is fastest where a few images fit into its nearest cache.
        """
        del rows
        c, h, w = self.shape
        turn = math.radians(self.degrees)
        cos, sin = math.cos(turn), math.sin(turn)
        # affine_grid measures in half-widths and half-heights: h / w keeps angles right for oblong images
        theta = torch.tensor([[[cos, -sin * h / w, 0.0], [sin * w / h, cos, 0.0]]])
        grid = torch.bmm(_places(h, w), theta.mT).view(1, h, w, 2)
        count = math.gcd(len(images) * c, 16 * torch.get_num_threads())
        stack = torch.from_numpy(images).float().reshape(count, -1, h, w)
        turned = grid_sample(stack, grid.expand(count, -1, -1, -1), align_corners=False)
        return _as(turned.reshape(images.shape).numpy(), images.dtype)


@dataclass(frozen=True, eq=False)
class Blend:
    """Every image faded into a partner of its own: (1 - weight) image + weight partner.

    >>> fade = Blend(np.array([[100, 0]], dtype=np.uint8), partners=np.array([0]), weight=0.25)
    >>> fade(np.array([[0, 40]], dtype=np.uint8), np.array([0])).tolist()
    [[25, 30]]
    """

    others: Pixels
    partners: Rows
    weight: float

    def __call__(self, images: Pixels, rows: Rows) -> Pixels:
        """Image ``rows[i]`` is blended with ``others[partners[rows[i]]]``."""
        others = self.others.take(self.partners.take(rows), axis=0)
        blend = torch.from_numpy(images).float().lerp_(torch.from_numpy(others).float(), self.weight)
        return _as(blend.numpy(), images.dtype)


@dataclass(frozen=True)
class Normalise:
    """(x - mean) / std, where bytes are first brought to [0, 1]; one value for all channels, or one for each.

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
        scale, shift = _factors(self, 255.0 if pixels.dtype == np.uint8 else 1.0)
        if isinstance(scale, float):
            return torch.add(shift, x, alpha=scale, out=x)
        if len(scale) != shape[0]:
            raise ScenarioError(f"normalise: {len(scale)} means for images of {shape[0]} channels")
        return x.mul_(scale[:, None, None]).add_(shift[:, None, None])


@lru_cache(maxsize=8)
def _places(h: int, w: int) -> Tensor:
    """(x, y, 1) of every pixel as affine_grid measures them, (1, h * w, 3): most of its time goes into these."""
    still = affine_grid(torch.eye(2, 3)[None], [1, 1, h, w], align_corners=False).view(1, -1, 2)
    return torch.cat([still, torch.ones(1, h * w, 1)], dim=2)


@lru_cache(maxsize=256)
def _factors(normalise: Normalise, unit: float) -> tuple[float | Tensor, Tensor]:
    """(x / unit - mean) / std as scale * x + shift; one number where all channels share it."""
    scale = [1 / (unit * s) for s in normalise.std]
    shift = torch.tensor([-m / s for m, s in zip(normalise.mean, normalise.std, strict=True)])
    return (scale[0], shift[0]) if len(scale) == 1 else (torch.tensor(scale), shift)


UNIT = Normalise()
PADDED_MNIST = Normalise((0.1000,), (0.2752,))


def own_statistics(part: Part) -> Normalise:
    """The normalisation that gives each channel of this part mean 0 and variance 1.

    >>> images = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1)
    >>> own_statistics(Part(images, torch.zeros(2, dtype=torch.int64)))
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


def _as(values: NDArray[np.float32], dtype: np.dtype[np.uint8] | np.dtype[np.float32]) -> Pixels:
    """Back to the type that the images had; bytes are rounded, never cut off."""
    return np.rint(values, out=values).astype(np.uint8) if dtype == np.uint8 else values
