"""What is measured at which iteration: a pure function of the configuration and the stages of the stream."""

from __future__ import annotations

from dataclasses import dataclass

from bgd.runs.config import TestConfig
from bgd.runs.metrics import evaluation_schedule


@dataclass(frozen=True)
class Schedule:
    """Iterations of a run's measurements, each after so many batches.

    Attributes:
        length: iterations of the run.
        stages: ends of tasks, where the rows of R are measured.
        curve: points of the curve of training losses.
        evaluations: evenly spaced evaluations.
        histograms: evenly spaced histograms of the stds.

    >>> schedule = plan_measurements(TestConfig(curve=2, evaluations=5), stages=(12, 24), length=24)
    >>> sorted(schedule.curve), schedule.events, schedule.evaluates(4), schedule.evaluates(5)
    ([12, 24], [4, 9, 12, 14, 19, 24], True, False)
    """

    length: int
    stages: tuple[int, ...]
    curve: frozenset[int]
    evaluations: frozenset[int]
    histograms: frozenset[int]

    @property
    def events(self) -> list[int]:
        """All iterations after which something is measured or a task ends, the start excepted."""
        return sorted(self.curve | self.evaluations | self.histograms | set(self.stages) | {self.length})

    def rows_at(self, iteration: int) -> list[int]:
        """The rows of R that are measured there."""
        return [row for row, stage in enumerate(self.stages) if stage == iteration]

    def evaluates(self, iteration: int) -> bool:
        """Whether all tasks are evaluated there: the start and the end count too."""
        return iteration in self.stages or iteration in self.evaluations or iteration in (0, self.length)

    def records_stds(self, iteration: int) -> bool:
        """Whether the stds of the posterior are recorded there."""
        return iteration in self.stages or iteration == 0 or iteration in self.histograms


def plan_measurements(test: TestConfig, stages: tuple[int, ...], length: int) -> Schedule:
    """The schedule of a run of ``length`` iterations."""
    return Schedule(
        length,
        tuple(stages),
        _evenly(test.curve, length),
        _evenly(test.evaluations, length),
        _evenly(test.stds, length),
    )


def _evenly(count: int, length: int) -> frozenset[int]:
    return frozenset(evaluation_schedule(length, min(count, length)) if count else ())
