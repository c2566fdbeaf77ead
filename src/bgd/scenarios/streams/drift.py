"""Drifts: data as a function of time (the paper's kind B of undefined boundaries)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bgd.data.types import DataSet, Part
from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.heads import shared_heads
from bgd.scenarios.philox import Purpose, integers, random_words
from bgd.scenarios.tasks.builders import make_whole_task
from bgd.scenarios.tasks.normalise import UNIT, Normalisation, resolve_normalisation
from bgd.scenarios.tasks.transforms import Blend, Indices, Pixels, Rotate
from bgd.scenarios.tasks.types import Samples, Task, TaskSet


@dataclass(frozen=True, eq=False)
class Drift:
    """Data in motion: ``at(progress)`` is the task that the data is at a time from 0 to 1.

    Any function of progress will do, as long as the labels keep their meaning and the images their shape.
    """

    at: Callable[[float], Task]
    classes: int

    def moments(self, count: int) -> TaskSet:
        """The data at evenly spaced times, as tasks to test on."""
        if count < 2:
            raise ScenarioError(f"moments={count} is out of range: a drift needs at least its start and end")
        times = np.linspace(0, 1, count).tolist()
        return TaskSet(tuple(self.at(time) for time in times), shared_heads(count, self.classes))


def rotating(data: DataSet, start: float = 0.0, end: float = 90.0, *, normalise: Normalisation = UNIT) -> Drift:
    """Images that rotate from ``start`` to ``end`` degrees, counter-clockwise.

    >>> import torch
    >>> part = Part(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.arange(2))
    >>> rotating(DataSet("two", part, part, ("a", "b")), 0, 60).moments(3).names
    ('0 degrees', '30 degrees', '60 degrees')
    """
    if not np.isfinite([start, end]).all():
        raise ScenarioError(f"rotating from {start} to {end} degrees: give finite angles")
    c, h, w = data.train.images.shape[1:]
    normalise = resolve_normalisation(normalise, data.train)
    unrotated = make_whole_task(data, data.name, None, 0, normalise)

    def at(progress: float) -> Task:
        angle = start + progress * (end - start)
        transform = Rotate(angle, (c, h, w)) if angle % 360 else None
        train, test = (replace(part, transform=transform) for part in (unrotated.train, unrotated.test))
        return Task(f"{angle:g} degrees", train, test)

    return Drift(at, len(data.classes))


def blending(data: DataSet, into: DataSet, *, seed: int = 0, normalise: Normalisation = UNIT) -> Drift:
    """Images of one data set that slowly become those of another, class by class (cheetahs into cats).

    Every image fades into a partner of its own, a random image of the class with the same number.

    >>> import torch
    >>> black = Part(torch.full((2, 1, 1, 1), 0, dtype=torch.uint8), torch.arange(2))
    >>> white = Part(torch.full((2, 1, 1, 1), 200, dtype=torch.uint8), torch.arange(2))
    >>> drift = blending(DataSet("b", black, black, ("0", "1")), DataSet("w", white, white, ("0", "1")))
    >>> int(drift.at(0.75).train.pixels(np.array([0])).item())
    150
    """
    ours, theirs = data.train.images, into.train.images
    if ours.shape[1:] != theirs.shape[1:] or ours.dtype != theirs.dtype:
        raise ScenarioError(
            f"blending {data.name} {tuple(ours.shape[1:])} {ours.dtype} into {into.name} "
            f"{tuple(theirs.shape[1:])} {theirs.dtype}: convert both to one shape first, with bgd.data.to_shape"
        )
    if len(data.classes) != len(into.classes):
        raise ScenarioError(
            f"blending {data.name} with {len(data.classes)} classes into {into.name} with "
            f"{len(into.classes)}: reduce both to as many classes, with bgd.data.subset"
        )
    normalise = resolve_normalisation(normalise, data.train)
    # checks both data sets, and makes the views that every moment shares
    start = make_whole_task(data, data.name, None, 0, normalise)
    goal = make_whole_task(into, into.name, None, 0, normalise)
    train_partners = _choose_partners(data.train, into.train, seed, 0)
    test_partners = _choose_partners(data.test, into.test, seed, 1)

    def blend(samples: Samples, others: Pixels, partners: Indices, weight: float) -> Samples:
        return replace(samples, transform=Blend(others, partners, weight) if weight else None)

    def at(progress: float) -> Task:
        return Task(
            f"{data.name} {1 - progress:.0%}, {into.name} {progress:.0%}",
            blend(start.train, goal.train.flat, train_partners, progress),
            blend(start.test, goal.test.flat, test_partners, progress),
        )

    return Drift(at, len(data.classes))


def _choose_partners(part: Part, into: Part, seed: int, which: int) -> Indices:
    """For each image of ``part`` one of ``into`` with the same label."""
    raw = random_words(seed, Purpose.PARTNERS, (which, 0), len(part))
    partners = np.zeros(len(part), dtype=np.intp)
    labels, others = part.labels.numpy(), into.labels.numpy()
    for label in np.unique(labels):
        mine, theirs = np.flatnonzero(labels == label), np.flatnonzero(others == label)
        partners[mine] = theirs[integers(raw[mine], len(theirs))]
    return partners
