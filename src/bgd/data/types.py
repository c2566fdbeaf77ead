"""The types in which data is passed through the package: arrays in memory with names."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bgd.errors import BGDError


class DataError(BGDError, ValueError):
    """Data that cannot be used or cannot be found; the message names the file or value and the way out."""


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Images and labels: ``images`` (N, C, H, W), uint8 or float32; ``labels`` (N,), int64.

    >>> part = Part(torch.zeros(5, 1, 8, 8, dtype=torch.uint8), torch.arange(5))
    >>> len(part), part
    (5, Part(5 images, uint8 1x8x8))
    """

    images: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        images, labels = self.images, self.labels
        if images.dtype not in (torch.uint8, torch.float32) or images.ndim != 4:
            raise DataError(f"images must be uint8 or float32 (N, C, H, W), not {_describe(images)}")
        if labels.dtype != torch.int64 or labels.ndim != 1:
            raise DataError(f"labels must be int64 (N,), not {_describe(labels)}")
        if len(images) != len(labels):
            raise DataError(f"{len(images)} images but {len(labels)} labels")
        if images.is_floating_point() and not (finite := images.isfinite().flatten(1).all(1)).all():
            bad = (~finite).nonzero().flatten()
            raise DataError(f"{len(bad)} images hold NaN or infinite pixels, the first at index {int(bad[0])}")

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        kind = str(self.images.dtype).removeprefix("torch.")
        return f"Part({len(self):,} images, {kind} {'x'.join(map(str, self.images.shape[1:]))})"


@dataclass(frozen=True, eq=False, repr=False)
class DataSet:
    """A named data set: a training part, a test part, and the names of its classes.

    ``note`` is what a reader of results must know, such as a part that is not the published one.

    >>> part = Part(torch.zeros(2, 1, 8, 8, dtype=torch.uint8), torch.tensor([0, 1]))
    >>> DataSet("tiny", part, part, ("zero", "one"))
    DataSet('tiny', 2 classes, train=Part(2 images, uint8 1x8x8), test=Part(2 images, uint8 1x8x8))
    >>> DataSet("tiny", part, part, ("zero",))
    Traceback (most recent call last):
    bgd.data.types.DataError: tiny: train labels run from 0 to 1, but there is 1 class: labels must be 0
    """

    name: str
    train: Part
    test: Part
    classes: tuple[str, ...]
    note: str = ""

    def __post_init__(self) -> None:
        count = len(self.classes)
        allowed = "0" if count == 1 else f"0 to {count - 1}"
        classes = "there is 1 class" if count == 1 else f"there are {count} classes"
        for which, part in (("train", self.train), ("test", self.test)):
            if len(part) == 0:
                raise DataError(f"{self.name}: the {which} part is empty")
            low, high = int(part.labels.min()), int(part.labels.max())
            if low < 0 or high >= count:
                raise DataError(
                    f"{self.name}: {which} labels run from {low} to {high}, but {classes}: labels must be {allowed}"
                )
        train, test = self.train.images, self.test.images
        if train.shape[1:] != test.shape[1:] or train.dtype != test.dtype:
            raise DataError(f"{self.name}: train images are {_describe(train)} but test images are {_describe(test)}")

    def __repr__(self) -> str:
        note = f", note={self.note!r}" if self.note else ""
        return f"DataSet({self.name!r}, {len(self.classes)} classes, train={self.train}, test={self.test}{note})"


def hold_out(part: Part, every: int = 5) -> tuple[Part, Part]:
    """Split one part into train and test, always the same way: of each class, every ``every``-th image is a test.

    >>> labels = torch.tensor([0, 1, 0, 1, 0, 1, 0, 1])
    >>> train, test = hold_out(Part(torch.zeros(8, 1, 2, 2), labels), every=4)
    >>> train.labels.tolist(), test.labels.tolist()
    ([0, 1, 0, 1, 0, 1], [0, 1])
    """
    test = torch.zeros(len(part), dtype=torch.bool)
    for label in set(part.labels.tolist()):
        test[(part.labels == label).nonzero().flatten()[every - 1 :: every]] = True
    return Part(part.images[~test], part.labels[~test]), Part(part.images[test], part.labels[test])


def _describe(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
