"""The continuous stream: tasks that fade into each other (the paper's kind A of undefined boundaries)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bgd.scenarios.philox import Purpose, integers, random_words, unit
from bgd.scenarios.streams.augment import Augment
from bgd.scenarios.streams.base import MEMORY, Stream
from bgd.scenarios.streams.cache import LastValueCache
from bgd.scenarios.streams.schedule import corners, proportions
from bgd.scenarios.tasks.pixels import Rows
from bgd.scenarios.tasks.types import TaskSet
from bgd.scenarios.types import Scenario

BLOCK = 64  # iterations drawn at once: one call for many costs little more than one for one


class Continuous(Stream):
    """Every sample draws its task from a distribution that moves with time, then an image with replacement.

    Args:
        tasks: in order of appearance.
        scenario: one without boundaries.
        iterations: N, of the whole stream.
        beta: how sharp the transitions are: they take 2 / beta of a task's share; up to 1 means hard switches.
        batch_size: samples of a batch.
        seed: of tasks and images drawn.
        memory: bytes that may be spent to remember changed images; 0 for none.
        augment: what happens to training images before they are normalised; None for nothing.

    >>> import torch
    >>> from bgd.scenarios import DataSet, Part, permute, scenario
    >>> part = Part(torch.zeros(5, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 1, 0, 1, 0]))
    >>> tasks = permute(DataSet("five", part, part, ("a", "b")), 2, shared_head=True)
    >>> stream = Continuous(tasks, scenario("continuous task-agnostic"), iterations=80, batch_size=10)
    >>> stream.batch(40).task is None, stream.drawn([0, 40, 79]).tolist()
    (True, [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    """

    sharp = False

    def __init__(
        self,
        tasks: TaskSet,
        scenario: Scenario,
        *,
        iterations: int,
        beta: float = 4.0,
        batch_size: int = 128,
        seed: int = 0,
        memory: int = MEMORY,
        augment: Augment | None = None,
    ) -> None:
        super().__init__(tasks, scenario, batch_size=batch_size, seed=seed, memory=memory, augment=augment)
        self.corners = corners(iterations, len(tasks), beta)
        self.iterations = iterations
        self.beta = beta
        self.stages = tuple(iterations * (k + 1) // len(tasks) for k in range(len(tasks)))
        self._sizes = np.array([len(task.train) for task in tasks], dtype=np.uint64)
        self._block = LastValueCache[list[tuple[int | NDArray[np.intp], Rows]]]()

    def __len__(self) -> int:
        return self.iterations

    def draw(self, iteration: int) -> tuple[int | NDArray[np.intp], Rows]:
        """Each sample's task (or the one that all have) and image."""
        block, i = divmod(iteration, BLOCK)
        return self._block.get(block, lambda: self._draw_block(block))[i]

    def expected(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """The schedule, (n, T)."""
        return proportions(iterations, self.corners)

    def _draw_block(self, block: int) -> list[tuple[int | NDArray[np.intp], Rows]]:
        raw = random_words(self.seed, Purpose.BATCH, (block, 0), 2 * BLOCK * self.batch_size)
        for_task, for_image = raw.reshape(2, BLOCK, self.batch_size)
        # a last block that reaches beyond the end repeats the last iteration's distribution
        last = self.iterations - 1
        cumulative = self.expected(np.minimum(np.arange(block * BLOCK, (block + 1) * BLOCK), last)).cumsum(1)
        cumulative /= cumulative[:, -1:]
        tasks = np.stack([np.searchsorted(c, u, side="right") for c, u in zip(cumulative, unit(for_task), strict=True)])
        where = integers(for_image, self._sizes[tasks])
        pure = (tasks == tasks[:, :1]).all(axis=1)
        return [(int(t[0]) if one else t, rows) for t, one, rows in zip(tasks, pure, where, strict=True)]
