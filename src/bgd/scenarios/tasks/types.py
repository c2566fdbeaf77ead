"""Tasks: which images, under which transform, with which labels. Nothing is copied until a batch is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.heads import Heads
from bgd.scenarios.tasks.normalise import UNIT, Normalise
from bgd.scenarios.tasks.transforms import Indices, Pixels, Transform
from bgd.scenarios.types import Batch


@dataclass(frozen=True, eq=False)
class Samples:
    """One part of a task: a view of a data set's images, shared by all tasks built from it.

    Args:
        images: of the data set, (N, C, H, W), uint8 or float32; never copied.
        labels: (n,) outputs of the network, one for each sample of the task.
        rows: (n,) indices of the task's images; None for all, in order.
        transform: what makes them this task's images, such as a permutation; None for nothing.
        normalise: the last step of every batch.

    >>> images = torch.tensor([[[[0]]], [[[255]]]], dtype=torch.uint8)
    >>> ones = Samples(images, labels=torch.tensor([4]), rows=np.array([1]))
    >>> ones.x(ones.pixels(np.array([0]))).item(), len(ones)
    (1.0, 1)
    """

    images: Tensor
    labels: Tensor
    rows: Indices | None = None
    transform: Transform | None = None
    normalise: Normalise = UNIT

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Of one image: (C, H, W)."""
        c, h, w = self.images.shape[1:]
        return c, h, w

    @cached_property
    def flat(self) -> Pixels:
        """The data set's images as rows, without a copy."""
        flat: Pixels = self.images.reshape(len(self.images), -1).numpy()
        return flat

    @cached_property
    def outputs(self) -> NDArray[np.int64]:
        """The labels as a numpy view."""
        view: NDArray[np.int64] = self.labels.numpy()
        return view

    def pixels(self, indices: Indices) -> Pixels:
        """Transformed but not yet normalised images (n, D) of some samples, in new memory."""
        rows = indices if self.rows is None else self.rows.take(indices)
        images = self.flat.take(rows, axis=0)
        return images if self.transform is None else self.transform(images, rows)

    def x(self, pixels: Pixels) -> Tensor:
        """The network's input (n, C, H, W) from such pixels."""
        return self.normalise(pixels, self.shape)

    def y(self, indices: Indices) -> Tensor:
        """The labels of some samples, in new memory."""
        return torch.from_numpy(self.outputs.take(indices))


@dataclass(frozen=True, eq=False)
class Task:
    """A name, samples to train on and samples to test on."""

    name: str
    train: Samples
    test: Samples


@dataclass(frozen=True, eq=False)
class TaskSet:
    """Tasks in order, with the outputs that each uses. Made by the functions of ``bgd.scenarios.tasks.builders``.

    >>> images = torch.zeros(2, 1, 4, 4, dtype=torch.uint8)
    >>> samples = Samples(images, torch.tensor([0, 3]))
    >>> TaskSet((Task("odd one out", samples, samples),), Heads(2, ((0, 1),)))
    Traceback (most recent call last):
    bgd.scenarios.errors.ScenarioError: task 0 (odd one out): train label 3 is not among its outputs (0, 1)
    """

    tasks: tuple[Task, ...]
    heads: Heads

    def __post_init__(self) -> None:
        if len(self.tasks) != len(self.heads.tasks):
            raise ScenarioError(f"{len(self.tasks)} tasks but heads for {len(self.heads.tasks)}")
        for t, task in enumerate(self.tasks):
            for which, part in (("train", task.train), ("test", task.test)):
                where = f"task {t} ({task.name})"
                if not len(part):
                    raise ScenarioError(f"{where} has no {which} samples: build it from more data")
                if part.shape != self.shape:
                    raise ScenarioError(
                        f"{where} has images of shape {part.shape}, task 0 {self.shape}: "
                        "convert them to one shape first, with bgd.data.to_shape"
                    )
                if part.images.dtype != self.tasks[0].train.images.dtype:
                    raise ScenarioError(
                        f"{where} has {part.images.dtype} images, task 0 {self.tasks[0].train.images.dtype}: "
                        "convert them to one type first"
                    )
                own = torch.tensor(self.heads.tasks[t])
                foreign = part.labels[~torch.isin(part.labels, own)]
                if len(foreign):
                    raise ScenarioError(
                        f"{where}: {which} label {int(foreign[0])} is not among its outputs {self.heads.tasks[t]}"
                    )

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, t: int) -> Task:
        return self.tasks[t]

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one image: (C, H, W)."""
        return self.tasks[0].train.shape

    @property
    def names(self) -> tuple[str, ...]:
        """Of the tasks, in order."""
        return tuple(task.name for task in self.tasks)


def in_batches(samples: Samples, size: int, task: int | None = None) -> Iterator[Batch]:
    """All samples once, in order; for evaluation in large batches.

    A plain function of one part: its iterator, which a learner gets, refers to no stream and no other task.

    >>> samples = Samples(torch.zeros(5, 1, 2, 2, dtype=torch.uint8), torch.arange(5))
    >>> [len(batch.y) for batch in in_batches(samples, size=2)]
    [2, 2, 1]
    """
    if size < 1:
        raise ScenarioError(f"batch size {size} is out of range: give 1 or more")
    for start in range(0, len(samples), size):
        indices = np.arange(start, min(start + size, len(samples)))
        yield Batch(samples.x(samples.pixels(indices)), samples.y(indices), task)
