"""Build tasks from data sets: split by classes, permute, rotate, mix.

Each function takes data and gives a ``TaskSet``; ``shared_head`` chooses between C outputs for all tasks and T x C
separate ones. Images are held once, however many tasks are made of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bgd.data.prepare import check_every_class_has_samples, number_classes, to_shape
from bgd.data.types import DataSet, Part
from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.heads import Heads, separate_heads, shared_heads
from bgd.scenarios.philox import Purpose, permutation
from bgd.scenarios.tasks.normalise import UNIT, Normalisation, Normalise, resolve_normalisation
from bgd.scenarios.tasks.transforms import Permute, Rotate, Transform
from bgd.scenarios.tasks.types import Samples, Task, TaskSet


def split(
    data: DataSet,
    groups: Sequence[Sequence[int]] | int = 5,
    *,
    shared_head: bool,
    normalise: Normalisation = UNIT,
) -> TaskSet:
    """Tasks of different classes, such as (0, 1), (2, 3), ... of Split MNIST.

    With a shared head a class is labelled by its index in its group; with separate heads each class of each group
    has an output of its own, so that no class may be in two groups.

    Args:
        data: whose classes are split.
        groups: the classes of each task; or a number of tasks of equal size, in order.
        shared_head: C outputs for all tasks, or one for each class of each group.
        normalise: how pixels become numbers; ``"own"`` for the training images' mean and std.

    >>> import torch
    >>> part = Part(torch.zeros(4, 1, 2, 2, dtype=torch.uint8), torch.arange(4))
    >>> data = DataSet("four", part, part, ("a", "b", "c", "d"))
    >>> split(data, 2, shared_head=False).heads
    Heads(outputs=4, tasks=((0, 1), (2, 3)))
    >>> [task.train.labels.tolist() for task in split(data, [(3, 1), (0, 2)], shared_head=True)]
    [[1, 0], [0, 1]]
    """
    groups = _make_equal_groups(data, groups) if isinstance(groups, int) else [tuple(g) for g in groups]
    if not groups:
        raise ScenarioError("split: no groups: give the classes of at least one task")
    new_labels = [number_classes(data, group) for group in groups]
    if shared_head:
        heads = shared_heads(len(groups), max(map(len, groups)))
    else:
        _check_classes_are_disjoint(groups)
        heads = separate_heads([len(group) for group in groups])
    normalise = resolve_normalisation(normalise, data.train)

    def samples(part: Part, which: str, t: int) -> Samples:
        labels = new_labels[t][part.labels]
        indices = (labels >= 0).nonzero().flatten()
        check_every_class_has_samples(data, which, labels[indices], groups[t])
        return Samples(part.images, labels[indices] + heads.tasks[t][0], indices.numpy(), None, normalise)

    tasks = [
        Task(
            ", ".join(data.classes[c] for c in group),
            samples(data.train, "train", t),
            samples(data.test, "test", t),
        )
        for t, group in enumerate(groups)
    ]
    return TaskSet(tuple(tasks), heads)


def permute(
    data: DataSet,
    tasks: int,
    *,
    shared_head: bool,
    seed: int = 0,
    normalise: Normalisation = UNIT,
) -> TaskSet:
    """The same data with its pixels in another order for each task; task 0 stays as it is, and alone is the data set.

    Pixels move among all channels and positions, padding included. The order of task t depends on ``seed`` and t
    alone, so that a run with more tasks begins with the same ones.

    >>> import torch
    >>> part = Part(torch.arange(8, dtype=torch.uint8).view(2, 1, 2, 2), torch.arange(2))
    >>> tasks = permute(DataSet("two", part, part, ("a", "b")), 3, shared_head=True)
    >>> tasks[2].train.images is tasks[0].train.images, tasks.heads.outputs
    (True, 2)
    """
    _check_task_count("permute", tasks)
    pixels = math.prod(data.train.images.shape[1:])
    transforms: list[Transform | None] = [None]
    transforms += [Permute(permutation(seed, Purpose.PIXELS, (t, 0), pixels)) for t in range(1, tasks)]
    names = ["unpermuted" if tasks > 1 else data.name, *(f"permutation {t}" for t in range(1, tasks))]
    return _transform_data(data, transforms, names, shared_head, normalise)


def rotate(
    data: DataSet,
    degrees: Sequence[float],
    *,
    shared_head: bool,
    normalise: Normalisation = UNIT,
) -> TaskSet:
    """The same data rotated counter-clockwise by another angle for each task.

    >>> import torch
    >>> part = Part(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.arange(2))
    >>> rotate(DataSet("two", part, part, ("a", "b")), [0, 30], shared_head=False).names
    ('0 degrees', '30 degrees')
    """
    _check_task_count("rotate", len(degrees))
    for angle in degrees:
        if not math.isfinite(angle):
            raise ScenarioError(f"rotate: an angle of {angle} degrees: give finite angles")
    c, h, w = data.train.images.shape[1:]
    transforms: list[Transform | None] = [Rotate(angle, (c, h, w)) if angle % 360 else None for angle in degrees]
    return _transform_data(data, transforms, [f"{angle:g} degrees" for angle in degrees], shared_head, normalise)


def mix(
    data: Sequence[DataSet],
    *,
    shared_head: bool,
    shape: tuple[int, int, int] | None = None,
    normalise: Normalisation = "own",
) -> TaskSet:
    """One data set after another, each a task, in one common shape.

    Args:
        data: at least one data set.
        shared_head: as many outputs as the largest has classes, or its own for each.
        shape: (C, H, W) of all images; by default the smallest in which all fit.
        normalise: ``"own"`` gives each data set mean 0 and variance 1 in each channel, as for the vision mix.

    >>> import torch
    >>> grey = Part(torch.arange(8, dtype=torch.uint8).view(2, 1, 2, 2), torch.arange(2))
    >>> rgb = Part(torch.arange(54, dtype=torch.uint8).view(2, 3, 3, 3), torch.arange(2))
    >>> mixed = mix([DataSet(n, p, p, ("a", "b")) for n, p in (("grey", grey), ("rgb", rgb))], shared_head=False)
    >>> mixed.shape, mixed.heads.outputs
    ((3, 3, 3), 4)
    """
    _check_task_count("mix", len(data))
    if shape is None:
        c, h, w = (max(sizes) for sizes in zip(*(d.train.images.shape[1:] for d in data), strict=True))
        shape = (c, h, w)
    data = [to_shape(d, shape) for d in data]
    classes = [len(d.classes) for d in data]
    heads = shared_heads(len(data), max(classes)) if shared_head else separate_heads(classes)
    return TaskSet(
        tuple(
            make_whole_task(d, d.name, None, heads.tasks[t][0], resolve_normalisation(normalise, d.train))
            for t, d in enumerate(data)
        ),
        heads,
    )


def _transform_data(
    data: DataSet,
    transforms: Sequence[Transform | None],
    names: Sequence[str],
    shared_head: bool,
    normalise: Normalisation,
) -> TaskSet:
    """One task for each transform of the same data."""
    tasks, classes = len(transforms), len(data.classes)
    heads: Heads = shared_heads(tasks, classes) if shared_head else separate_heads([classes] * tasks)
    normalise = resolve_normalisation(normalise, data.train)
    return TaskSet(
        tuple(
            make_whole_task(data, name, transform, heads.tasks[t][0], normalise)
            for t, (name, transform) in enumerate(zip(names, transforms, strict=True))
        ),
        heads,
    )


def make_whole_task(data: DataSet, name: str, transform: Transform | None, first: int, normalise: Normalise) -> Task:
    """A task of all the data, whose classes are the outputs from ``first`` on.

    >>> import torch
    >>> part = Part(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.arange(2))
    >>> make_whole_task(DataSet("two", part, part, ("a", "b")), "second", None, 2, UNIT).train.labels.tolist()
    [2, 3]
    """
    classes = range(len(data.classes))
    for which, part in (("train", data.train), ("test", data.test)):
        check_every_class_has_samples(data, which, part.labels, classes)
    train, test = (
        Samples(part.images, part.labels + first, None, transform, normalise) for part in (data.train, data.test)
    )
    return Task(name, train, test)


def _make_equal_groups(data: DataSet, count: int) -> list[tuple[int, ...]]:
    classes = len(data.classes)
    if count < 1 or classes % count:
        raise ScenarioError(
            f"split: {classes} classes of {data.name} do not make {count} equal groups: list the groups instead"
        )
    return [tuple(group) for group in np.arange(classes).reshape(count, -1).tolist()]


def _check_classes_are_disjoint(groups: Sequence[Sequence[int]]) -> None:
    owner: dict[int, int] = {}
    for t, group in enumerate(groups):
        for c in group:
            if owner.setdefault(c, t) != t:
                raise ScenarioError(
                    f"split: class {c} is in tasks {owner[c]} and {t}, but with separate heads tasks share no "
                    "labels: regroup the classes, or use shared_head=True"
                )


def _check_task_count(what: str, tasks: int) -> None:
    if tasks < 1:
        raise ScenarioError(f"{what}: {tasks} tasks: give at least one")
