"""Streams with epochs: one task after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.philox import Purpose, permutation
from bgd.scenarios.streams.augment import Augment
from bgd.scenarios.streams.base import MEMORY, Stream
from bgd.scenarios.streams.cache import LastValueCache
from bgd.scenarios.tasks.pixels import Rows
from bgd.scenarios.tasks.types import TaskSet
from bgd.scenarios.types import Scenario


class Discrete(Stream):
    """One task after the other, each for some epochs, shuffled anew every epoch; the last batch may be smaller.

    Args:
        tasks: in order of appearance.
        scenario: any with boundaries; decides what a batch reveals.
        epochs: for which each task is shown.
        batch_size: samples of a batch.
        seed: of the shuffling.
        memory: bytes that may be spent to remember changed images; 0 for none.
        augment: what happens to training images before they are normalised; None for nothing.

    >>> import torch
    >>> from bgd.scenarios import DataSet, Part, permute, scenario
    >>> part = Part(torch.zeros(5, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 1, 0, 1, 0]))
    >>> tasks = permute(DataSet("five", part, part, ("a", "b")), 2, shared_head=True)
    >>> stream = Discrete(tasks, scenario("domain"), epochs=2, batch_size=3)
    >>> [(len(batch.y), batch.task) for batch in stream]
    [(3, 0), (2, 0), (3, 0), (2, 0), (3, 1), (2, 1), (3, 1), (2, 1)]
    >>> [i for i in range(len(stream)) if stream.tells_end(i)]
    [3, 7]
    """

    sharp = True

    def __init__(
        self,
        tasks: TaskSet,
        scenario: Scenario,
        *,
        epochs: int = 1,
        batch_size: int = 128,
        seed: int = 0,
        memory: int = MEMORY,
        augment: Augment | None = None,
    ) -> None:
        super().__init__(tasks, scenario, batch_size=batch_size, seed=seed, memory=memory, augment=augment)
        self.epochs = _checked(epochs)
        self._steps = [-(-len(task.train) // batch_size) for task in tasks]
        self.stages = tuple(accumulate(epochs * steps for steps in self._steps))
        self._order = LastValueCache[Rows]()

    def __len__(self) -> int:
        return self.stages[-1]

    def draw(self, iteration: int) -> tuple[int, Rows]:
        """The task of the iteration and the next samples in the order of its epoch."""
        task = bisect_right(self.stages, iteration)
        begin = self.stages[task - 1] if task else 0
        epoch, step = divmod(iteration - begin, self._steps[task])
        size = len(self.tasks[task].train)
        order = self._order.get((task, epoch), lambda: permutation(self.seed, Purpose.ORDER, (task, epoch), size))
        return task, order[step * self.batch_size : (step + 1) * self.batch_size]

    def expected(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """One task at a time, (n, T)."""
        return np.eye(len(self.tasks))[np.searchsorted(self.stages, iterations, side="right")]


class Joint(Stream):
    """All tasks at once, shuffled together every epoch: the world in which nothing is forgotten (Offline).

    Its batches mix tasks, so ``Batch.task`` is a tensor where the scenario reveals it. No task ever ends.

    >>> import torch
    >>> from bgd.scenarios import DataSet, Part, permute, scenario
    >>> part = Part(torch.zeros(5, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 1, 0, 1, 0]))
    >>> tasks = permute(DataSet("five", part, part, ("a", "b")), 2, shared_head=True)
    >>> stream = Joint(tasks, scenario("domain"), batch_size=10)
    >>> stream[0].task.tolist().count(1), stream.tells_end(0)
    (5, False)
    """

    def __init__(
        self,
        tasks: TaskSet,
        scenario: Scenario,
        *,
        epochs: int = 1,
        batch_size: int = 128,
        seed: int = 0,
        memory: int = MEMORY,
        augment: Augment | None = None,
    ) -> None:
        super().__init__(tasks, scenario, batch_size=batch_size, seed=seed, memory=memory, augment=augment)
        self.epochs = _checked(epochs)
        self._starts = np.array([0, *accumulate(len(task.train) for task in tasks)])
        self._steps = -(-int(self._starts[-1]) // batch_size)
        self.stages = (epochs * self._steps,)
        self._order = LastValueCache[Rows]()

    def __len__(self) -> int:
        return self.stages[-1]

    def tells_end(self, iteration: int) -> bool:
        """Never: there is no task that ends."""
        self._checked(iteration)
        return False

    def draw(self, iteration: int) -> tuple[NDArray[np.intp], Rows]:
        """Each sample's task, and which of that task's samples it is."""
        epoch, step = divmod(iteration, self._steps)
        size = int(self._starts[-1])
        # no task has this number: the order differs from that of a stream of single tasks
        place = (len(self.tasks), epoch)
        order = self._order.get(epoch, lambda: permutation(self.seed, Purpose.ORDER, place, size))
        here = order[step * self.batch_size : (step + 1) * self.batch_size]
        task = np.searchsorted(self._starts, here, side="right") - 1
        return task, here - self._starts.take(task)

    def expected(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """Always in proportion to the tasks' sizes, (n, T)."""
        return np.tile(np.diff(self._starts) / self._starts[-1], (len(iterations), 1))


def _checked(epochs: int) -> int:
    if epochs < 1:
        raise ScenarioError(f"epochs={epochs} is out of range: give 1 or more")
    return epochs
