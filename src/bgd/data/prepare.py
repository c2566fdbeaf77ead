"""From one data set to another: padded, in another shape, with some classes only, or smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import pad as pad_tensor

from bgd.data.types import DataError, DataSet, Part


def pad(data: DataSet, pixels: int = 2) -> DataSet:
    """Zeros around every image: 28 x 28 becomes 32 x 32 with 2, as Hsu et al. pad MNIST.

    >>> part = Part(torch.ones(1, 1, 28, 28), torch.tensor([0]))
    >>> pad(DataSet("one", part, part, ("a",)), 2).train.images.shape
    torch.Size([1, 1, 32, 32])
    """
    if pixels < 0:
        raise DataError(f"pad: pixels={pixels} is negative: give 0 or more zeros on each side")
    return _map_images(data, lambda images: pad_tensor(images, [pixels] * 4)) if pixels else data


def to_shape(data: DataSet, shape: tuple[int, int, int]) -> DataSet:
    """Images in the middle of a zero frame of ``shape`` (C, H, W); grey becomes C equal channels.

    >>> part = Part(torch.ones(1, 1, 28, 28), torch.tensor([0]))
    >>> to_shape(DataSet("one", part, part, ("a",)), (3, 32, 32)).train.images.shape
    torch.Size([1, 3, 32, 32])
    """
    c, h, w = data.train.images.shape[1:]
    channels, height, width = shape
    if h > height or w > width or c not in (1, channels):
        raise DataError(
            f"{data.name} has images of shape {(c, h, w)}, which do not fit into {shape}: "
            "choose a shape at least as large, with as many channels (or start from one)"
        )
    if (c, h, w) == shape:
        return data
    top, left = (height - h) // 2, (width - w) // 2
    frame = [left, width - w - left, top, height - h - top]
    return _map_images(data, lambda images: pad_tensor(images, frame).expand(-1, channels, -1, -1).contiguous())


def subset(data: DataSet, classes: Sequence[int]) -> DataSet:
    """Some classes only, numbered 0, 1, ... in the order given.

    >>> part = Part(torch.zeros(3, 1, 2, 2), torch.tensor([0, 1, 2]))
    >>> subset(DataSet("three", part, part, ("a", "b", "c")), [2, 0]).train.labels.tolist()
    [1, 0]
    """
    new_labels = number_classes(data, classes)

    def select(part: Part, which: str) -> Part:
        keep = (new_labels[part.labels] >= 0).nonzero().flatten()
        labels = new_labels[part.labels[keep]]
        check_every_class_has_samples(data, which, labels, classes)
        return Part(part.images[keep], labels)

    return replace(
        data,
        train=select(data.train, "train"),
        test=select(data.test, "test"),
        classes=tuple(data.classes[c] for c in classes),
    )


def limit(data: DataSet, train: int | None = None, test: int | None = None) -> DataSet:
    """At most the first ``train`` and ``test`` images of each part: for a quick trial.

    >>> part = Part(torch.zeros(3, 1, 2, 2), torch.tensor([0, 1, 0]))
    >>> len(limit(DataSet("three", part, part, ("a", "b")), train=2).train)
    2
    """
    for name, count in (("train", train), ("test", test)):
        if count is not None and count < 1:
            raise DataError(f"limit: {name}={count} leaves no image: give 1 or more, or None for all")
    return replace(
        data,
        train=Part(data.train.images[:train], data.train.labels[:train]),
        test=Part(data.test.images[:test], data.test.labels[:test]),
    )


def number_classes(data: DataSet, classes: Sequence[int]) -> Tensor:
    """For each class of the data its index in ``classes``, or -1.

    >>> part = Part(torch.zeros(3, 1, 2, 2), torch.tensor([0, 1, 2]))
    >>> number_classes(DataSet("three", part, part, ("a", "b", "c")), [2, 0]).tolist()
    [1, -1, 0]
    """
    count = len(data.classes)
    if not classes or len(set(classes)) < len(classes) or min(classes) < 0 or max(classes) >= count:
        raise DataError(f"classes {tuple(classes)} of {data.name}: list at least one, each once, from 0 to {count - 1}")
    new_labels = torch.full((count,), -1)
    new_labels[list(classes)] = torch.arange(len(classes))
    return new_labels


def check_every_class_has_samples(data: DataSet, which: str, labels: Tensor, classes: Sequence[int]) -> None:
    """Refuse a class of which a part holds no sample; ``labels`` are indices into ``classes``.

    >>> part = Part(torch.zeros(1, 1, 2, 2), torch.tensor([0]))
    >>> check_every_class_has_samples(DataSet("one", part, part, ("a", "b")), "train", part.labels, [0, 1])
    Traceback (most recent call last):
    bgd.data.types.DataError: class 1 ('b') of one has no train sample: leave it out, or use more data
    """
    counts = torch.bincount(labels, minlength=len(classes))
    for index in (counts == 0).nonzero().flatten().tolist():
        name = data.classes[classes[index]]
        raise DataError(
            f"class {classes[index]} ({name!r}) of {data.name} has no {which} sample: leave it out, or use more data"
        )


def _map_images(data: DataSet, function: Callable[[Tensor], Tensor]) -> DataSet:
    return replace(
        data,
        train=Part(function(data.train.images), data.train.labels),
        test=Part(function(data.test.images), data.test.labels),
    )
