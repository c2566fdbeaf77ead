"""Streams of drifting data: the data itself changes continuously (the paper's kind B of undefined boundaries)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bgd.data.types import DataSet, Part
from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.heads import shared_heads
from bgd.scenarios.philox import Purpose, integers, random_words
from bgd.scenarios.streams.augment import Augment
from bgd.scenarios.streams.base import Raw, Stream
from bgd.scenarios.streams.cache import LastValueCache
from bgd.scenarios.tasks.builders import Normalisation, resolve, whole
from bgd.scenarios.tasks.pixels import UNIT, Blend, Pixels, Rotate, Rows
from bgd.scenarios.tasks.types import Samples, Task, TaskSet
from bgd.scenarios.types import Scenario

BLOCK = 64  # iterations drawn at once: one call for many costs little more than one for one


@dataclass(frozen=True, eq=False)
class Drift:
    """A world in motion: ``at(progress)`` is the task that it is at a time from 0 to 1.

    Any function of progress will do, as long as the labels keep their meaning and the images their shape.
    """

    at: Callable[[float], Task]
    classes: int

    def moments(self, count: int) -> TaskSet:
        """The world at evenly spaced times, as tasks to test on."""
        if count < 2:
            raise ScenarioError(f"moments={count} is out of range: a drift needs at least its start and end")
        times = np.linspace(0, 1, count).tolist()
        return TaskSet(tuple(self.at(time) for time in times), shared_heads(count, self.classes))


def rotating(data: DataSet, start: float = 0.0, end: float = 90.0, *, normalise: Normalisation = UNIT) -> Drift:
    """Images that turn from ``start`` to ``end`` degrees, counter-clockwise.

    >>> import torch
    >>> part = Part(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.arange(2))
    >>> rotating(DataSet("two", part, part, ("a", "b")), 0, 60).moments(3).names
    ('0 degrees', '30 degrees', '60 degrees')
    """
    if not np.isfinite([start, end]).all():
        raise ScenarioError(f"rotating from {start} to {end} degrees: give finite angles")
    c, h, w = data.train.images.shape[1:]
    normalise = resolve(normalise, data.train)

    still = whole(data, data.name, None, 0, normalise)

    def at(progress: float) -> Task:
        angle = start + progress * (end - start)
        change = Rotate(angle, (c, h, w)) if angle % 360 else None
        train, test = (replace(part, change=change) for part in (still.train, still.test))
        return Task(f"{angle:g} degrees", train, test)

    return Drift(at, len(data.classes))


def blending(data: DataSet, into: DataSet, *, seed: int = 0, normalise: Normalisation = UNIT) -> Drift:
    """Images of one data set that slowly become those of another, class by class (cheetahs into cats).

    Every image fades into a partner of its own, drawn from the images of the class with the same number.

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
            f"{tuple(theirs.shape[1:])} {theirs.dtype}: bring both to one shape first, with to_shape"
        )
    if len(data.classes) != len(into.classes):
        raise ScenarioError(
            f"blending {data.name} with {len(data.classes)} classes into {into.name} with "
            f"{len(into.classes)}: cut both to as many classes, with subset"
        )
    normalise = resolve(normalise, data.train)
    # checks both data sets, and gives the views that every moment shares
    start, goal = whole(data, data.name, None, 0, normalise), whole(into, into.name, None, 0, normalise)
    train_pairs = _partners(data.train, into.train, (seed, 0))
    test_pairs = _partners(data.test, into.test, (seed, 1))

    def part(samples: Samples, others: Pixels, pairs: Rows, weight: float) -> Samples:
        return replace(samples, change=Blend(others, pairs, weight) if weight else None)

    def at(progress: float) -> Task:
        return Task(
            f"{data.name} {1 - progress:.0%}, {into.name} {progress:.0%}",
            part(start.train, goal.train.flat, train_pairs, progress),
            part(start.test, goal.test.flat, test_pairs, progress),
        )

    return Drift(at, len(data.classes))


class Drifting(Stream):
    """Every batch is drawn, with replacement, from the world as it is at that iteration.

    ``tasks`` are evenly spaced moments of the drift, to test on: the first is the start, the last the end. The stage of
    a moment ends half-way to the next one.

    Args:
        drift: the world; see ``rotating`` and ``blending``.
        scenario: one without boundaries and with a shared head.
        iterations: from start to end.
        moments: at which the world can be tested.
        batch_size: samples of a batch.
        seed: of the images drawn.
        augment: what happens to training images before they are normalised; None for nothing.

    >>> import torch
    >>> from bgd.scenarios import scenario
    >>> part = Part(torch.full((2, 1, 2, 2), 255, dtype=torch.uint8), torch.arange(2))
    >>> world = rotating(DataSet("two", part, part, ("a", "b")), 0, 45)
    >>> stream = Drifting(world, scenario("continuous task-agnostic"), iterations=10, batch_size=4)
    >>> bool(stream[0].x.mean() == 1), bool(stream[9].x.mean() < 1)
    (True, True)
    """

    sharp = False

    def __init__(
        self,
        drift: Drift,
        scenario: Scenario,
        *,
        iterations: int,
        moments: int = 5,
        batch_size: int = 128,
        seed: int = 0,
        augment: Augment | None = None,
    ) -> None:
        super().__init__(drift.moments(moments), scenario, batch_size=batch_size, seed=seed, memory=0, augment=augment)
        if iterations < moments:
            raise ScenarioError(
                f"iterations={iterations} is out of range: give at least one for each of {moments} moments"
            )
        self.drift = drift
        self.iterations = iterations
        # a row of R is measured when its moment has been learnt from, not when it has just begun
        ends = (round(iterations * (k + 0.5) / (moments - 1)) for k in range(moments))
        self.stages = tuple(max(1, min(end, iterations)) for end in ends)
        self._block = LastValueCache[Rows]()

    def __len__(self) -> int:
        return self.iterations

    def progress(self, iteration: int) -> float:
        """How far the world has moved, from 0 at the first iteration to 1 at the last."""
        return iteration / max(self.iterations - 1, 1)

    def draw(self, iteration: int) -> tuple[int, Rows]:
        """The moment that is nearest, and the images drawn."""
        block, i = divmod(iteration, BLOCK)
        rows = self._block.get(block, lambda: self._draw_block(block))
        return round(self.progress(iteration) * (len(self.tasks) - 1)), rows[i]

    def expected(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """How near each moment is, (n, T): 1 when it is there, falling to 0 at its neighbours."""
        place = np.asarray(iterations)[:, None] / max(self.iterations - 1, 1) * (len(self.tasks) - 1)
        return np.asarray(np.clip(1 - np.abs(place - np.arange(len(self.tasks))), 0, 1))

    def drawn(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """The same as expected: where the world is leaves nothing to chance."""
        return self.expected(iterations)

    def _gather(self, chunk: int) -> Raw:
        """A few batches, each of the world as it is then."""
        iterations = range(chunk * self._ahead, min((chunk + 1) * self._ahead, len(self)))
        where = [self.draw(i)[1] for i in iterations]
        now = [self.drift.at(self.progress(i)).train for i in iterations]
        return Raw(
            tasks=[0] * len(now),  # of all moments, the first one's normalisation
            starts=[k * self.batch_size for k in range(len(now) + 1)],
            pixels=np.concatenate([samples.pixels(rows) for samples, rows in zip(now, where, strict=True)]),
            y=self.tasks[0].train.outputs.take(np.concatenate(where)),
        )

    def _draw_block(self, block: int) -> Rows:
        raw = random_words(self.seed, Purpose.BATCH, (block, 0), BLOCK * self.batch_size)
        return integers(raw, len(self.tasks[0].train)).reshape(BLOCK, self.batch_size)


def _partners(part: Part, into: Part, place: tuple[int, int]) -> Rows:
    """For each image of ``part`` one of ``into`` with the same label."""
    seed, which = place
    raw = random_words(seed, Purpose.PARTNERS, (which, 0), len(part))
    partners = np.zeros(len(part), dtype=np.intp)
    labels, others = part.labels.numpy(), into.labels.numpy()
    for label in np.unique(labels):
        mine, theirs = np.flatnonzero(labels == label), np.flatnonzero(others == label)
        partners[mine] = theirs[integers(raw[mine], len(theirs))]
    return partners
