"""What all streams share: batches by iteration, as a scenario reveals them.

A stream belongs to the runner: it knows the tasks, the switches and the future. A learner gets none of it, only the
``Batch`` that ``stream.batch(i)`` makes, which holds what the scenario reveals and owns its memory.

Every batch is a pure function of (seed, iteration): a stream can be resumed at any iteration, and reading it twice
gives the same bytes. No worker processes, no global generator, and no memory that grows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import ClassVar, NamedTuple, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray

from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.philox import Purpose, random_words
from bgd.scenarios.streams.augment import Augment, augment_by_task
from bgd.scenarios.streams.cache import LastValueCache, TransformedImageCache
from bgd.scenarios.tasks.transforms import Indices, Pixels
from bgd.scenarios.tasks.types import TaskSet, in_batches
from bgd.scenarios.types import Batch, Knowledge, Scenario

CACHE_BYTES = 256 * 2**20  # of transformed images that a stream may keep
CHUNK_BYTES = 4 * 2**20  # of pixels that are gathered at once


class SamplingOptions(TypedDict, total=False):
    """The options of every stream; ``Stream`` describes them."""

    batch_size: int
    seed: int
    augment: Augment | Sequence[Augment | None] | None


class StreamOptions(SamplingOptions, total=False):
    """The options of a stream whose images come more than once."""

    cache_bytes: int


class Sampled(NamedTuple):
    """Which samples make a batch: their task, or the task of each; and their indices among that task's samples."""

    task: int | NDArray[np.intp]
    indices: Indices


class RawBatches(NamedTuple):
    """A few batches before normalisation; never given to a learner, since it holds the future."""

    tasks: list[int | NDArray[np.intp]]
    starts: list[int]
    pixels: Pixels
    y: NDArray[np.int64]


class Stream(ABC):
    """Batches by iteration, and what the runner may know of them.

    Args:
        tasks: in order of appearance.
        scenario: decides what a batch reveals.
        batch_size: samples of a batch.
        seed: of all random numbers of the stream.
        cache_bytes: the most that a cache of transformed (permuted, rotated) images may take; 0 for none.
        augment: what happens to training images before they are normalised: to all, or a list with one for each task;
            None for nothing.

    Attributes:
        stages: iterations after which a task has been learnt: where a row of the accuracy matrix is measured.
    """

    has_boundaries: ClassVar[bool | None] = None  # whether tasks begin and end sharply; None where it has no meaning
    stages: tuple[int, ...]

    def __init__(
        self,
        tasks: TaskSet,
        scenario: Scenario,
        *,
        batch_size: int = 128,
        seed: int = 0,
        cache_bytes: int = CACHE_BYTES,
        augment: Augment | Sequence[Augment | None] | None = None,
    ) -> None:
        if batch_size < 1:
            raise ScenarioError(f"batch_size={batch_size} is out of range: give 1 or more")
        if self.has_boundaries is not None and self.has_boundaries != scenario.boundaries:
            what, other = ("sharp", "no") if self.has_boundaries else ("no", "sharp")
            raise ScenarioError(
                f"{type(self).__name__} has {what} boundaries between tasks, but scenario {scenario.name!r} has "
                f"{other} ones: choose another stream or scenario"
            )
        if len(tasks) > 1 and tasks.heads.shared != scenario.shared_head:
            raise ScenarioError(
                f"scenario {scenario.name!r} has shared_head={scenario.shared_head}, but the tasks were built with "
                f"shared_head={tasks.heads.shared}: build them with shared_head={scenario.shared_head}"
            )
        random_words(seed, Purpose.BATCH, (0, 0), 0)  # rejects a seed out of range now, not at the first batch
        self.tasks = tasks
        self.scenario = scenario
        self.batch_size = batch_size
        self.seed = seed
        self.augment = augment
        self._augments = (augment,) * len(tasks) if augment is None or isinstance(augment, Augment) else tuple(augment)
        if len(self._augments) != len(tasks):
            raise ScenarioError(f"augment lists {len(self._augments)} tasks of {len(tasks)}: give one for each")
        self._image_cache = TransformedImageCache(cache_bytes)
        self._one_normalisation = len({task.train.normalise for task in tasks}) == 1
        # a few batches are made at once: alone, each would find the CPU caches full of the learner's last step
        self._chunk_size = max(1, min(16, CHUNK_BYTES // (batch_size * tasks[0].train.flat[0].nbytes)))
        self._raw_batches = LastValueCache[RawBatches]()
        self._batches = LastValueCache[dict[int, Batch]]()

    @abstractmethod
    def __len__(self) -> int:
        """Number of iterations."""

    @abstractmethod
    def sample(self, iteration: int) -> Sampled:
        """Which samples make the batch of an iteration; for the runner, as it names the task in any scenario."""

    @abstractmethod
    def expected_proportions(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """The distribution over tasks at these iterations, (n, T)."""

    def batch(self, iteration: int) -> Batch:
        """What a learner is given at an iteration."""
        chunk, k = divmod(self._check_iteration(iteration), self._chunk_size)
        raw = self._raw_batches.get(chunk, lambda: self._gather(chunk))
        rest = range(iteration, iteration + len(raw.tasks) - k)
        batches = self._batches.get(chunk, lambda: {i: self._make_batch(raw, i) for i in rest})
        # each is given out once, since a learner may write into it: a second request makes it again
        return batches.pop(iteration, None) or self._make_batch(raw, iteration)

    def __getitem__(self, iteration: int) -> Batch:
        return self.batch(iteration)

    def __iter__(self) -> Iterator[Batch]:
        return map(self.batch, range(len(self)))

    def reveals_boundary_at(self, iteration: int) -> bool:
        """Whether the end of a task is revealed to a learner after this iteration."""
        ends = self._check_iteration(iteration) + 1 in self.stages
        return ends and self.scenario.reveals >= Knowledge.BOUNDARIES

    def sampled_proportions(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """The shares of the tasks in the batches at these iterations, (n, T)."""
        shares = np.zeros((len(iterations), len(self.tasks)))
        for row, i in zip(shares, iterations, strict=True):
            task, indices = self.sample(self._check_iteration(i))
            row += np.bincount(np.broadcast_to(task, indices.shape), minlength=len(row)) / len(indices)
        return shares

    def test_batches(self, task: int, size: int = 2048) -> Iterator[Batch]:
        """A task's test samples in large batches, with the task's number only where testing reveals it."""
        return in_batches(self.tasks[task].test, size, task if self.scenario.task_in_testing else None)

    def train_batches(self, task: int, size: int = 2048) -> Iterator[Batch]:
        """A task's training samples again, in order: for methods that replay a task when it has ended."""
        revealed = task if self.scenario.reveals >= Knowledge.TASK_ID else None
        return in_batches(self.tasks[task].train, size, revealed)

    def _check_iteration(self, iteration: int) -> int:
        if not 0 <= iteration < len(self):
            raise IndexError(f"iteration {iteration} is out of range: this stream has {len(self)}, from 0")
        return iteration

    def _chunk_iterations(self, chunk: int) -> range:
        return range(chunk * self._chunk_size, min((chunk + 1) * self._chunk_size, len(self)))

    def _gather(self, chunk: int) -> RawBatches:
        """The pixels of a few batches, in the order sampled, so that their order reveals nothing of the tasks."""
        samples = [self.sample(i) for i in self._chunk_iterations(chunk)]
        indices = np.concatenate([one.indices for one in samples])
        tasks = np.concatenate([np.broadcast_to(one.task, one.indices.shape) for one in samples])
        starts = [0, *accumulate(len(one.indices) for one in samples)]
        present = np.flatnonzero(np.bincount(tasks)).tolist()
        if len(present) == 1:
            pixels = self._transformed_pixels(present[0], indices)
            y = self.tasks[present[0]].train.outputs.take(indices)
        else:
            flat = self.tasks[0].train.flat
            pixels = np.empty((len(indices), flat.shape[1]), dtype=flat.dtype)
            y = np.empty(len(indices), dtype=np.int64)
            for t in present:
                at = np.flatnonzero(tasks == t)
                pixels[at] = self._transformed_pixels(t, indices[at])
                y[at] = self.tasks[t].train.outputs.take(indices[at])
        return RawBatches([one.task for one in samples], starts, pixels, y)

    def _transformed_pixels(self, task: int, indices: Indices) -> Pixels:
        samples = self.tasks[task].train
        if samples.transform is None:
            return samples.pixels(indices)
        return self._image_cache.pixels(task, samples, indices)

    def _make_batch(self, raw: RawBatches, iteration: int) -> Batch:
        """One of the batches gathered, in memory of its own."""
        k = iteration % self._chunk_size
        own = slice(raw.starts[k], raw.starts[k + 1])
        task, pixels = raw.tasks[k], raw.pixels[own]
        pixels = augment_by_task(self._augments, pixels, task, self.tasks.shape, self.seed, iteration)
        if isinstance(task, int) or self._one_normalisation:
            x = self.tasks[task if isinstance(task, int) else 0].train.x(pixels)
        else:
            x = torch.empty(len(pixels), *self.tasks.shape)
            for t in np.unique(task).tolist():
                x[torch.from_numpy(task == t)] = self.tasks[t].train.x(pixels[task == t])
        y = torch.from_numpy(raw.y[own].copy())
        if self.scenario.reveals < Knowledge.TASK_ID:
            return Batch(x, y)
        return Batch(x, y, task if isinstance(task, int) else torch.from_numpy(task.astype(np.int64)))
