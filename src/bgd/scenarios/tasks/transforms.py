"""What makes a data set's images those of a task: pixels permuted, rotated, or blended with other images.

A transform works on flat images (n, D) of any number type and keeps the type, so that bytes stay bytes until
``normalise.py`` turns them into the network's input.
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

from bgd.scenarios.errors import ScenarioError

Pixels = NDArray[np.uint8] | NDArray[np.float32]
"""Flat images (n, D)."""
Indices = NDArray[np.intp]
"""Which images of a data set, or which samples of a task, (n,)."""


class Transform(Protocol):
    """Turns images into those of a task. ``indices`` are those of the images in the data set."""

    def __call__(self, images: Pixels, indices: Indices) -> Pixels:
        """Transformed images (n, D), in new memory."""


@dataclass(frozen=True, eq=False)
class Permute:
    """The pixels of every image in another, fixed order.

    >>> Permute(np.array([2, 0, 1]))(np.array([[7, 8, 9]], dtype=np.uint8), np.array([0])).tolist()
    [[9, 7, 8]]
    """

    order: NDArray[np.intp]

    def __call__(self, images: Pixels, indices: Indices) -> Pixels:
        """Pixel i of the result is pixel ``order[i]`` of the image."""
        del indices
        return images.take(self.order, axis=1)


@dataclass(frozen=True)
class Rotate:
    """Images rotated counter-clockwise about their middle, bilinear, with zeros coming in at the corners.

    >>> image = np.array([[1, 2, 3, 4]], dtype=np.uint8)
    >>> Rotate(90, (1, 2, 2))(image, np.array([0])).tolist()
    [[2, 4, 1, 3]]
    """

    degrees: float
    shape: tuple[int, int, int]

    def __post_init__(self) -> None:
        """Reject plain features: kept as images one pixel high, they would leave their frame."""
        if min(self.shape[1:]) < 2:
            raise ScenarioError(
                f"data of shape {self.shape} cannot be rotated, since it is no image: permute it, blend it into other "
                "data, or write a Drift of its own"
            )

    def __call__(self, images: Pixels, indices: Indices) -> Pixels:
        """All images in one pass: they share one sampling grid, as channels of some large images.

        Torch gives a thread one of those, and is fastest where a few images fit into its nearest cache.
        """
        del indices
        c, h, w = self.shape
        angle = math.radians(self.degrees)
        cos, sin = math.cos(angle), math.sin(angle)
        # affine_grid measures in half-widths and half-heights: h / w keeps angles right for oblong images
        theta = torch.tensor([[[cos, -sin * h / w, 0.0], [sin * w / h, cos, 0.0]]])
        grid = torch.bmm(_pixel_coordinates(h, w), theta.mT).view(1, h, w, 2)
        count = math.gcd(len(images) * c, 16 * torch.get_num_threads())
        stack = torch.from_numpy(images).float().reshape(count, -1, h, w)
        rotated = grid_sample(stack, grid.expand(count, -1, -1, -1), align_corners=False)
        return _to_type(rotated.reshape(images.shape).numpy(), images.dtype)


@dataclass(frozen=True, eq=False)
class Blend:
    """Every image faded into a partner of its own: (1 - weight) image + weight partner.

    >>> fade = Blend(np.array([[100, 0]], dtype=np.uint8), partners=np.array([0]), weight=0.25)
    >>> fade(np.array([[0, 40]], dtype=np.uint8), np.array([0])).tolist()
    [[25, 30]]
    """

    others: Pixels
    partners: Indices
    weight: float

    def __call__(self, images: Pixels, indices: Indices) -> Pixels:
        """Image ``indices[i]`` is blended with ``others[partners[indices[i]]]``."""
        others = self.others.take(self.partners.take(indices), axis=0)
        blend = torch.from_numpy(images).float().lerp_(torch.from_numpy(others).float(), self.weight)
        return _to_type(blend.numpy(), images.dtype)


@lru_cache(maxsize=8)
def _pixel_coordinates(h: int, w: int) -> Tensor:
    """(x, y, 1) of every pixel in affine_grid's units, (1, h * w, 3): most of its time goes into these."""
    unrotated = affine_grid(torch.eye(2, 3)[None], [1, 1, h, w], align_corners=False).view(1, -1, 2)
    return torch.cat([unrotated, torch.ones(1, h * w, 1)], dim=2)


def _to_type(values: NDArray[np.float32], dtype: np.dtype[np.uint8] | np.dtype[np.float32]) -> Pixels:
    """Back to the images' own type; bytes are rounded, never truncated."""
    return np.rint(values, out=values).astype(np.uint8) if dtype == np.uint8 else values
