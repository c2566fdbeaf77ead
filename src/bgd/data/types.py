"""The one shape in which data travels through the package: arrays in memory with names."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Part:
    """Images and labels: ``images`` (N, C, H, W), uint8 or float32; ``labels`` (N,), int64."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class DataSet:
    """A named data set: a training part, a test part, and the names of its classes."""

    name: str
    train: Part
    test: Part
    classes: tuple[str, ...]
