"""The stream of drifting data: every batch comes from the data as it is at that iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.philox import Purpose, integers, random_words
from bgd.scenarios.streams.base import RawBatches, Sampled, SamplingOptions
from bgd.scenarios.streams.drift import Drift
from bgd.scenarios.streams.sampled import BLOCK, SampledStream
from bgd.scenarios.types import Scenario


class Drifting(SampledStream):
    """Every batch is sampled, with replacement, from the data as it is at that iteration.

    ``tasks`` are evenly spaced moments of the drift, to test on: the first is the start, the last the end. The stage of
    a moment ends half-way to the next one.

    Args:
        drift: the data as a function of time; see ``rotating`` and ``blending``.
        scenario: one without boundaries and with a shared head.
        iterations: from start to end.
        moments: number of evenly spaced times to test at.
        **options: ``batch_size``, ``seed`` and ``augment``, as in ``Stream``; no image comes twice, so none are cached.

    >>> import torch
    >>> from bgd.scenarios import DataSet, Part, rotating, scenario
    >>> part = Part(torch.full((2, 1, 2, 2), 255, dtype=torch.uint8), torch.arange(2))
    >>> drift = rotating(DataSet("two", part, part, ("a", "b")), 0, 45)
    >>> stream = Drifting(drift, scenario("continuous task-agnostic"), iterations=10, batch_size=4)
    >>> bool(stream[0].x.mean() == 1), bool(stream[9].x.mean() < 1)
    (True, True)
    """

    def __init__(
        self,
        drift: Drift,
        scenario: Scenario,
        *,
        iterations: int,
        moments: int = 5,
        **options: Unpack[SamplingOptions],
    ) -> None:
        super().__init__(drift.moments(moments), scenario, iterations=iterations, cache_bytes=0, **options)
        if iterations < moments:
            raise ScenarioError(
                f"iterations={iterations} is out of range: give at least one for each of {moments} moments"
            )
        self.drift = drift
        # a row of the accuracy matrix is measured when its moment has been learnt, not when it has just begun
        ends = (round(iterations * (k + 0.5) / (moments - 1)) for k in range(moments))
        self.stages = tuple(max(1, min(end, iterations)) for end in ends)

    def progress(self, iteration: int) -> float:
        """How far the data has moved, from 0 at the first iteration to 1 at the last."""
        return iteration / max(self.iterations - 1, 1)

    def expected_proportions(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """How near each moment is, (n, T): 1 when it is there, falling to 0 at its neighbours."""
        moment = np.asarray(iterations)[:, None] / max(self.iterations - 1, 1) * (len(self.tasks) - 1)
        return np.asarray(np.clip(1 - np.abs(moment - np.arange(len(self.tasks))), 0, 1))

    def sampled_proportions(self, iterations: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """The same as expected: the state of the data is not random."""
        return self.expected_proportions(iterations)

    def _sample_block(self, block: int) -> list[Sampled]:
        """The nearest moment of each iteration, and its images."""
        raw = random_words(self.seed, Purpose.BATCH, (block, 0), BLOCK * self.batch_size)
        indices = integers(raw, len(self.tasks[0].train)).reshape(BLOCK, self.batch_size)
        last = len(self.tasks) - 1
        return [Sampled(round(self.progress(block * BLOCK + k) * last), indices[k]) for k in range(BLOCK)]

    def _gather(self, chunk: int) -> RawBatches:
        """A few batches, each of the data as it is then."""
        iterations = self._chunk_iterations(chunk)
        indices = [self.sample(i).indices for i in iterations]
        current = [self.drift.at(self.progress(i)).train for i in iterations]
        return RawBatches(
            tasks=[0] * len(current),  # of all moments, the first one's normalisation
            starts=[k * self.batch_size for k in range(len(current) + 1)],
            pixels=np.concatenate([samples.pixels(i) for samples, i in zip(current, indices, strict=True)]),
            y=self.tasks[0].train.outputs.take(np.concatenate(indices)),
        )
