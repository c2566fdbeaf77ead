"""Streams with epochs: one task after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.philox import Purpose, permutation
from bgd.scenarios.streams.base import Sampled, Stream, StreamOptions
from bgd.scenarios.streams.cache import LastValueCache
from bgd.scenarios.tasks.transforms import Indices
from bgd.scenarios.tasks.types import TaskSet
from bgd.scenarios.types import Scenario


class EpochStream(Stream):
    """A stream that shows every sample once an epoch, in a new order; the last batch of an epoch may be smaller."""

    def __init__(
        self, tasks: TaskSet, scenario: Scenario, *, epochs: int = 1, **options: Unpack[StreamOptions]
    ) -> None:
        super().__init__(tasks, scenario, **options)
        if epochs < 1:
            raise ScenarioError(f"epochs={epochs} is out of range: give 1 or more")
        self.epochs = epochs
        self._order = LastValueCache[Indices]()

    def __len__(self) -> int:
        return self.stages[-1]

    def _count_steps(self, size: int) -> int:
        """Batches in an epoch of so many samples."""
        return -(-size // self.batch_size)

    def _sample_step(self, position: tuple[int, int], size: int, step: int) -> Indices:
        """The samples of a step, in the random order of 0..size-1 that belongs to a position."""
        order = self._order.get(position, lambda: permutation(self.seed, Purpose.ORDER, position, size))
        return order[step * self.batch_size : (step + 1) * self.batch_size]


class Discrete(EpochStream):
    """One task after the other, each for some epochs, shuffled again every epoch.

    Args:
        tasks: in order of appearance.
        scenario: any with boundaries; decides what a batch reveals.
        epochs: for which each task is shown.
        **options: ``batch_size``, ``seed``, ``cache_bytes`` and ``augment``, as in ``Stream``.

    >>> import torch
    >>> from bgd.scenarios import DataSet, Part, permute, scenario
    >>> part = Part(torch.zeros(5, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 1, 0, 1, 0]))
    >>> tasks = permute(DataSet("five", part, part, ("a", "b")), 2, shared_head=True)
    >>> stream = Discrete(tasks, scenario("domain"), epochs=2, batch_size=3)
    >>> [(len(batch.y), batch.task) for batch in stream]
    [(3, 0), (2, 0), (3, 0), (2, 0), (3, 1), (2, 1), (3, 1), (2, 1)]
    >>> [i for i in range(len(stream)) if stream.reveals_boundary_at(i)]
    [3, 7]
    """

    has_boundaries = True

    def __init__(
        self, tasks: TaskSet, scenario: Scenario, *, epochs: int = 1, **options: Unpack[StreamOptions]
    ) -> None:
        super().__init__(tasks, scenario, epochs=epochs, **options)
        self._steps = [self._count_steps(len(task.train)) for task in tasks]
        self.stages = tuple(accumulate(epochs * steps for steps in self._steps))

    def sample(self, iteration: int) -> Sampled:
        """The task of the iteration and the next samples in the order of its epoch."""
        task = bisect_right(self.stages, iteration)
        begin = self.stages[task - 1] if task else 0
        epoch, step = divmod(iteration - begin, self._steps[task])
        return Sampled(task, self._sample_step((task, epoch), len(self.tasks[task].train), step))

    def expected_proportions(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """One task at a time, (n, T)."""
        return np.eye(len(self.tasks))[np.searchsorted(self.stages, iterations, side="right")]


class Joint(EpochStream):
    """All tasks at once, shuffled together every epoch, so that nothing can be forgotten (Offline).

    Its batches mix tasks, so ``Batch.task`` is a tensor where the scenario reveals it. No task ever ends.

    Args:
        tasks: all are shown in every epoch.
        scenario: decides what a batch reveals.
        epochs: of all tasks together.
        **options: ``batch_size``, ``seed``, ``cache_bytes`` and ``augment``, as in ``Stream``.

    >>> import torch
    >>> from bgd.scenarios import DataSet, Part, permute, scenario
    >>> part = Part(torch.zeros(5, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 1, 0, 1, 0]))
    >>> tasks = permute(DataSet("five", part, part, ("a", "b")), 2, shared_head=True)
    >>> stream = Joint(tasks, scenario("domain"), batch_size=10)
    >>> stream[0].task.tolist().count(1), stream.reveals_boundary_at(0)
    (5, False)
    """

    def __init__(
        self, tasks: TaskSet, scenario: Scenario, *, epochs: int = 1, **options: Unpack[StreamOptions]
    ) -> None:
        super().__init__(tasks, scenario, epochs=epochs, **options)
        self._starts = np.array([0, *accumulate(len(task.train) for task in tasks)])
        self._size = int(self._starts[-1])
        self._steps = self._count_steps(self._size)
        self.stages = (epochs * self._steps,)

    def reveals_boundary_at(self, iteration: int) -> bool:
        """Never: there is no task that ends."""
        self._check_iteration(iteration)
        return False

    def sample(self, iteration: int) -> Sampled:
        """Each sample's task, and which of that task's samples it is."""
        epoch, step = divmod(iteration, self._steps)
        # no task has this number: the order differs from that of a stream of single tasks
        indices = self._sample_step((len(self.tasks), epoch), self._size, step)
        task = np.searchsorted(self._starts, indices, side="right") - 1
        return Sampled(task, indices - self._starts.take(task))

    def expected_proportions(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """Always in proportion to the tasks' sizes, (n, T)."""
        return np.tile(np.diff(self._starts) / self._size, (len(iterations), 1))
