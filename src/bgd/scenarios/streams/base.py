"""Streams: the order in which the world shows itself, one batch at a time.

A stream is the director's object: it knows the tasks, the switches and the future. A learner is handed none of it,
only the ``Batch`` that ``stream.batch(i)`` makes, which holds what the scenario reveals and owns its memory.

Every batch is a pure function of (seed, iteration): a stream can be entered anywhere, and reading it twice gives the
same bytes. No worker processes, no global generator, and no memory that grows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.philox import Purpose, random_words
from bgd.scenarios.streams.augment import Augment
from bgd.scenarios.streams.cache import LastValueCache, TransformedImageCache
from bgd.scenarios.tasks.pixels import Pixels, Rows
from bgd.scenarios.tasks.types import TaskSet, in_batches
from bgd.scenarios.types import Batch, Knowledge, Scenario

MEMORY = 256 * 2**20  # bytes of changed images that a stream may remember
CHUNK = 4 * 2**20  # bytes of pixels that are gathered at once


class Raw(NamedTuple):
    """A few batches before normalisation; never handed out, since it holds the future."""

    tasks: list[int | NDArray[np.intp]] | list[int]
    starts: list[int]
    pixels: Pixels
    y: NDArray[np.int64]


class Stream(ABC):
    """What all streams share: batches by iteration, and what the director may ask.

    Args:
        tasks: in order of appearance.
        scenario: decides what a batch reveals.
        batch_size: samples of a batch.
        seed: of everything that is drawn.
        memory: bytes that may be spent to remember changed (permuted, rotated) images; 0 for none.
        augment: what happens to training images before they are normalised; None for nothing.

    Attributes:
        stages: iterations after which a task has been learnt: where a row of the accuracy matrix is measured.
    """

    sharp: ClassVar[bool | None] = None  # whether tasks begin and end at once; None where that has no meaning
    stages: tuple[int, ...]

    def __init__(
        self,
        tasks: TaskSet,
        scenario: Scenario,
        *,
        batch_size: int = 128,
        seed: int = 0,
        memory: int = MEMORY,
        augment: Augment | None = None,
    ) -> None:
        if batch_size < 1:
            raise ScenarioError(f"batch_size={batch_size} is out of range: give 1 or more")
        if self.sharp is not None and self.sharp != scenario.boundaries:
            what, other = ("sharp", "no") if self.sharp else ("no", "sharp")
            raise ScenarioError(
                f"{type(self).__name__} has {what} boundaries between tasks, but scenario {scenario.name!r} has "
                f"{other} ones: choose another stream or scenario"
            )
        if len(tasks) > 1 and tasks.heads.shared != scenario.shared_head:
            raise ScenarioError(
                f"scenario {scenario.name!r} has shared_head={scenario.shared_head}, but the tasks were cut with "
                f"shared_head={tasks.heads.shared}: cut them with shared_head={scenario.shared_head}"
            )
        random_words(seed, Purpose.BATCH, (0, 0), 0)  # a seed out of range is said here, not at the first batch
        self.tasks = tasks
        self.scenario = scenario
        self.batch_size = batch_size
        self.seed = seed
        self.augment = augment
        self._remembered = TransformedImageCache(memory)
        self._alike = len({task.train.normalise for task in tasks}) == 1
        # a few batches are made at once: alone, each would find the caches full of the learner's last step
        self._ahead = max(1, min(16, CHUNK // (batch_size * tasks[0].train.flat[0].nbytes)))
        self._raw = LastValueCache[Raw]()
        self._ready = LastValueCache[dict[int, Batch]]()

    @abstractmethod
    def __len__(self) -> int:
        """Number of iterations."""

    @abstractmethod
    def draw(self, iteration: int) -> tuple[int | NDArray[np.intp], Rows]:
        """The director's view of a batch: the task, or each sample's task; and which of its samples."""

    @abstractmethod
    def expected(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """The distribution over tasks at these iterations, (n, T)."""

    def batch(self, iteration: int) -> Batch:
        """What a learner is handed at an iteration."""
        chunk, k = divmod(self._checked(iteration), self._ahead)
        raw = self._raw.get(chunk, lambda: self._gather(chunk))
        rest = range(iteration, iteration + len(raw.tasks) - k)
        ready = self._ready.get(chunk, lambda: {i: self._made(raw, i) for i in rest})
        # each is handed out once, since a learner may write into it: who asks again gets it made again
        return ready.pop(iteration, None) or self._made(raw, iteration)

    def _made(self, raw: Raw, iteration: int) -> Batch:
        """One of the batches gathered, in memory of its own."""
        k = iteration % self._ahead
        here = slice(raw.starts[k], raw.starts[k + 1])
        task, pixels = raw.tasks[k], raw.pixels[here]
        if self.augment is not None:
            pixels = self.augment(pixels, self.tasks.shape, self.seed, iteration)
        if isinstance(task, int) or self._alike:
            x = self.tasks[task if isinstance(task, int) else 0].train.x(pixels)
        else:
            x = torch.empty(len(pixels), *self.tasks.shape)
            for t in np.unique(task).tolist():
                x[torch.from_numpy(task == t)] = self.tasks[t].train.x(pixels[task == t])
        y = torch.from_numpy(raw.y[here].copy())
        if self.scenario.reveals < Knowledge.TASK_ID:
            return Batch(x, y)
        return Batch(x, y, task if isinstance(task, int) else torch.from_numpy(task.astype(np.int64)))

    def __getitem__(self, iteration: int) -> Batch:
        return self.batch(iteration)

    def __iter__(self) -> Iterator[Batch]:
        return map(self.batch, range(len(self)))

    def tells_end(self, iteration: int) -> bool:
        """Whether a learner is told, after this iteration, that a task has ended."""
        ends = self._checked(iteration) + 1 in self.stages
        return ends and self.scenario.reveals >= Knowledge.BOUNDARIES

    def drawn(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """The shares of the tasks in the batches at these iterations, (n, T)."""
        shares = np.zeros((len(iterations), len(self.tasks)))
        for row, i in zip(shares, iterations, strict=True):
            task, where = self.draw(self._checked(i))
            row += np.bincount(np.broadcast_to(task, where.shape), minlength=len(row)) / len(where)
        return shares

    def test_batches(self, task: int, size: int = 2048) -> Iterator[Batch]:
        """A task's test samples in large batches, with the task's number only where testing reveals it."""
        return in_batches(self.tasks[task].test, size, task if self.scenario.task_in_testing else None)

    def train_batches(self, task: int, size: int = 2048) -> Iterator[Batch]:
        """A task's training samples once more, in order: for methods that look back when a task has ended."""
        told = task if self.scenario.reveals >= Knowledge.TASK_ID else None
        return in_batches(self.tasks[task].train, size, told)

    def _checked(self, iteration: int) -> int:
        if not 0 <= iteration < len(self):
            raise IndexError(f"iteration {iteration} is out of range: this stream has {len(self)}, from 0")
        return iteration

    def _pixels(self, task: int, where: Rows) -> Pixels:
        samples = self.tasks[task].train
        return samples.pixels(where) if samples.change is None else self._remembered.pixels(task, samples, where)

    def _gather(self, chunk: int) -> Raw:
        """The pixels of a few batches, in the order drawn, so that their order tells nothing of the tasks."""
        draws = [self.draw(i) for i in range(chunk * self._ahead, min((chunk + 1) * self._ahead, len(self)))]
        where = np.concatenate([rows for _, rows in draws])
        tasks = np.concatenate([np.full(len(rows), task) if isinstance(task, int) else task for task, rows in draws])
        starts = [0, *accumulate(len(rows) for _, rows in draws)]
        present = np.flatnonzero(np.bincount(tasks)).tolist()
        if len(present) == 1:
            pixels = self._pixels(present[0], where)
            y = self.tasks[present[0]].train.outputs.take(where)
        else:
            flat = self.tasks[0].train.flat
            pixels = np.empty((len(where), flat.shape[1]), dtype=flat.dtype)
            y = np.empty(len(where), dtype=np.int64)
            for t in present:
                at = np.flatnonzero(tasks == t)
                pixels[at] = self._pixels(t, where[at])
                y[at] = self.tasks[t].train.outputs.take(where[at])
        return Raw([task for task, _ in draws], starts, pixels, y)
