"""The continuous stream: tasks that fade into each other (the paper's kind A of undefined boundaries)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from bgd.scenarios.philox import Purpose, integers, random_words, unit
from bgd.scenarios.streams.base import Sampled, StreamOptions
from bgd.scenarios.streams.sampled import BLOCK, SampledStream
from bgd.scenarios.streams.schedule import corners, proportions
from bgd.scenarios.tasks.types import TaskSet
from bgd.scenarios.types import Scenario


class Continuous(SampledStream):
    """Every sample gets its task from a distribution that moves with time, then an image with replacement.

    Args:
        tasks: in order of appearance.
        scenario: one without boundaries.
        iterations: N, of the whole stream.
        beta: how sharp the transitions are: they take 2 / beta of a task's share; up to 1 means hard switches.
        **options: ``batch_size``, ``seed``, ``cache_bytes`` and ``augment``, as in ``Stream``.

    >>> import torch
    >>> from bgd.scenarios import DataSet, Part, permute, scenario
    >>> part = Part(torch.zeros(5, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 1, 0, 1, 0]))
    >>> tasks = permute(DataSet("five", part, part, ("a", "b")), 2, shared_head=True)
    >>> stream = Continuous(tasks, scenario("continuous task-agnostic"), iterations=80, batch_size=10)
    >>> stream.batch(40).task is None, stream.sampled_proportions([0, 40, 79]).tolist()
    (True, [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    """

    def __init__(
        self,
        tasks: TaskSet,
        scenario: Scenario,
        *,
        iterations: int,
        beta: float = 4.0,
        **options: Unpack[StreamOptions],
    ) -> None:
        super().__init__(tasks, scenario, iterations=iterations, **options)
        self.corners = corners(iterations, len(tasks), beta)
        self.beta = beta
        self.stages = tuple(iterations * (k + 1) // len(tasks) for k in range(len(tasks)))
        self._sizes = np.array([len(task.train) for task in tasks], dtype=np.uint64)

    def expected_proportions(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """The schedule, (n, T)."""
        return proportions(iterations, self.corners)

    def _sample_block(self, block: int) -> list[Sampled]:
        raw = random_words(self.seed, Purpose.BATCH, (block, 0), 2 * BLOCK * self.batch_size)
        for_task, for_image = raw.reshape(2, BLOCK, self.batch_size)
        # a last block that reaches beyond the end repeats the last iteration's distribution
        iterations = np.minimum(np.arange(block * BLOCK, (block + 1) * BLOCK), self.iterations - 1)
        cumulative = self.expected_proportions(iterations).cumsum(1)
        cumulative /= cumulative[:, -1:]
        tasks = np.stack([np.searchsorted(c, u, side="right") for c, u in zip(cumulative, unit(for_task), strict=True)])
        indices = integers(for_image, self._sizes[tasks])
        pure = (tasks == tasks[:, :1]).all(axis=1)
        return [Sampled(int(t[0]) if one else t, i) for t, one, i in zip(tasks, pure, indices, strict=True)]
