"""The stream of a table in time order: every row once, first to be predicted, then to be learnt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from bgd.data.tables.types import Table
from bgd.scenarios.heads import shared_heads
from bgd.scenarios.streams.base import Sampled, Stream
from bgd.scenarios.tasks.types import Samples, Task, TaskSet
from bgd.scenarios.types import Scenario

LIMIT = 10.0
"""Standardised values beyond this many stds are cut: the first rows know little of the spread to come."""


def standardise_by_past(x: NDArray[np.float64], batch_size: int) -> NDArray[np.float32]:
    """Each batch with the mean and std of all rows before it: nothing of the future, not even of the batch itself.

    A missing value becomes 0, the mean. The first batch, and columns that were constant, have std 1.

    >>> standardise_by_past(np.array([[1.0], [3.0], [4.0], [np.nan]]), batch_size=2).ravel().tolist()
    [1.0, 3.0, 2.0, 0.0]
    """
    known = ~np.isnan(x)
    # sums of differences from each column's first value do not cancel where that is large
    first = x[known.argmax(0), np.arange(x.shape[1])]
    shifted = np.where(known, x - first, 0.0)
    counts, sums, squares = (np.cumsum(part, axis=0, dtype=np.float64) for part in (known, shifted, shifted**2))
    result = np.empty(x.shape, dtype=np.float32)
    for start in range(0, len(x), batch_size):
        rows = slice(start, start + batch_size)
        count = counts[start - 1] if start else np.zeros(x.shape[1])
        seen = np.maximum(count, 1)
        mean = sums[start - 1] / seen if start else np.zeros(x.shape[1])
        variance = squares[start - 1] / seen - mean**2 if start else np.zeros(x.shape[1])
        std = np.sqrt(np.where(variance > 1e-12 * np.maximum(mean**2, 1e-300), variance, 1.0))
        centre = np.where(count > 0, first + mean, 0.0)
        result[rows] = np.clip(np.where(known[rows], (x[rows] - centre) / std, 0.0), -LIMIT, LIMIT)
    return result


class Prequential(Stream):
    """Batches of a table's rows, in their order, standardised by what came before; one stage, at the end.

    Args:
        table: in time order.
        scenario: one without boundaries.
        batch_size: rows that are predicted, and then learnt, together.
        seed: not used by the stream: a table has one order.

    >>> from bgd.scenarios import scenario
    >>> table = Table("tiny", np.arange(5.0)[:, None], np.array([0, 1, 0, 1, 1]), ("t",), ("a", "b"))
    >>> stream = Prequential(table, scenario("continuous task-agnostic"), batch_size=2)
    >>> len(stream), stream[1].y.tolist(), stream[2].x.shape
    (3, [0, 1], torch.Size([1, 1, 1, 1]))
    """

    has_boundaries = False

    def __init__(self, table: Table, scenario: Scenario, *, batch_size: int = 16, seed: int = 0) -> None:
        rows = torch.from_numpy(standardise_by_past(table.x, max(batch_size, 1)))
        samples = Samples(rows[:, None, None, :], torch.from_numpy(table.y))
        tasks = TaskSet((Task(table.name, samples, samples),), shared_heads(1, len(table.classes)))
        super().__init__(tasks, scenario, batch_size=batch_size, seed=seed, cache_bytes=0)
        self.stages = (len(self),)

    def __len__(self) -> int:
        return -(-len(self.tasks[0].train) // self.batch_size)

    def sample(self, iteration: int) -> Sampled:
        """The next rows."""
        start = iteration * self.batch_size
        return Sampled(0, np.arange(start, min(start + self.batch_size, len(self.tasks[0].train))))

    def expected_proportions(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """There is one task."""
        return np.ones((len(iterations), 1))
