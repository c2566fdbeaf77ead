"""How far a run is, reported a few times a second."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

TICK = 0.2  # seconds between reports, and between checks whether a checkpoint is due


class Progress(NamedTuple):
    """How far a run is.

    Attributes:
        iteration: number of batches trained on since the start of the run, over all sessions.
        total: iterations of the whole run.
        task: the current one, from 1; in a stream without boundaries the one that prevails. 0 where all tasks are
            trained at once.
        tasks: how many there are.
        name: of the task.
        activity: what the run does if it does not train, such as 'evaluating'.

    >>> Progress(812, 1876, 3, 5, "digits 4, 5").iteration
    812
    """

    iteration: int
    total: int
    task: int = 0
    tasks: int = 0
    name: str = ""
    activity: str = ""


Report = Callable[[Progress], None]
"""Called with the progress a few times a second."""


def progress_at(iteration: int, stages: Sequence[int], total: int, names: Sequence[str], activity: str) -> Progress:
    """The progress at an iteration: what follows it belongs to the next task; other activities to the one before.

    Args:
        iteration: number of batches trained on.
        stages: iterations at which tasks end; one for all tasks where they are trained at once.
        total: iterations of the run.
        names: of the tasks.
        activity: empty for training.

    >>> progress_at(10, [10, 20], 20, ["a", "b"], ""), progress_at(10, [10, 20], 20, ["a", "b"], "evaluating").name
    (Progress(iteration=10, total=20, task=2, tasks=2, name='b', activity=''), 'a')
    """
    if len(stages) != len(names):
        return Progress(iteration, total, activity=activity)
    task = min((bisect_left if activity else bisect_right)(stages, iteration), len(names) - 1)
    return Progress(iteration, total, task + 1, len(names), names[task], activity)


class ProgressReporter:
    """Reports the progress of a run; knows when it last did.

    >>> reporter = ProgressReporter(print, [10, 20], 20, ["a", "b"])
    >>> reporter.report(3)
    Progress(iteration=3, total=20, task=1, tasks=2, name='a', activity='')
    >>> reporter.report_throttled(4, "evaluating")
    """

    def __init__(self, report: Report, stages: Sequence[int], total: int, names: Sequence[str]) -> None:
        self._report, self._stages, self._total, self._names = report, stages, total, names
        self._last = 0.0

    def report(self, iteration: int, activity: str = "") -> None:
        """Report now."""
        self._last = time.perf_counter()
        self._report(progress_at(iteration, self._stages, self._total, self._names, activity))

    def report_throttled(self, iteration: int, activity: str) -> None:
        """Report unless the last report is too recent; for loops inside what may take long."""
        if time.perf_counter() - self._last >= TICK:
            self.report(iteration, activity)
