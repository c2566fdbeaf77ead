"""Streams that sample with replacement, for a number of iterations, from a distribution that moves with time."""

from __future__ import annotations

from abc import abstractmethod
from typing import Unpack

from bgd.scenarios.streams.base import Sampled, Stream, StreamOptions
from bgd.scenarios.streams.cache import LastValueCache
from bgd.scenarios.tasks.types import TaskSet
from bgd.scenarios.types import Scenario

BLOCK = 64  # iterations sampled at once: one call for many costs little more than one for one


class SampledStream(Stream):
    """A stream of so many iterations, without boundaries, whose samples are chosen a block of iterations at a time."""

    has_boundaries = False

    def __init__(
        self, tasks: TaskSet, scenario: Scenario, *, iterations: int, **options: Unpack[StreamOptions]
    ) -> None:
        super().__init__(tasks, scenario, **options)
        self.iterations = iterations
        self._block = LastValueCache[list[Sampled]]()

    def __len__(self) -> int:
        return self.iterations

    def sample(self, iteration: int) -> Sampled:
        """The samples of an iteration, out of those of its block."""
        block, i = divmod(iteration, BLOCK)
        return self._block.get(block, lambda: self._sample_block(block))[i]

    @abstractmethod
    def _sample_block(self, block: int) -> list[Sampled]:
        """The samples of the iterations from ``block * BLOCK``; beyond the last one they are never used."""
