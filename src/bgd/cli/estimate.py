"""How long many runs will take, which differ: BGD takes ten times as long as SGD, and some have not begun.

A run at work is judged by its own pace; one that waits by that of its method, and by the length of others like it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bgd.runs.config import RunConfig
from bgd.runs.executors import Job, Outcome
from bgd.runs.progress import Progress

Kind = Callable[[RunConfig], object]
PACE: tuple[Kind, ...] = (lambda c: (c.row, c.column), lambda c: c.row, lambda c: c.method, lambda _: None)
LENGTH: tuple[Kind, ...] = (lambda c: (c.row, c.column), lambda c: c.column, lambda _: None)
"""What makes runs alike in seconds an iteration and in iterations, from the best reason to the last resort."""


class Estimate:
    """Keeps account of runs and says how much time is left.

    >>> clock = iter([0.0, 10.0, 10.0]).__next__
    >>> jobs = [Job(RunConfig(method="sgd", seed=seed), Path(str(seed))) for seed in (1, 2)]
    >>> estimate = Estimate(jobs, clock)
    >>> estimate.moved(jobs[0], Progress(0, 100))
    >>> estimate.moved(jobs[0], Progress(25, 100))
    >>> estimate.left(jobs[0]), estimate.left_of_all()
    (30.0, 70.0)
    """

    def __init__(self, jobs: Sequence[Job], clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.configs = {job.folder: job.config for job in jobs}
        self.waiting = dict(self.configs)  # or at work
        self.begun: dict[Path, tuple[float, float]] = {}  # when, and at which share, a run was first heard of
        self.shares: dict[Path, float] = {}
        self.lengths: dict[Path, float] = {}  # iterations
        self.paces: dict[Path, float] = {}  # seconds an iteration
        self.at_once = 1

    def moved(self, job: Job, place: Progress) -> None:
        """A run has come so far."""
        now, share = self.clock(), place.iteration / place.total
        begun, first = self.begun.setdefault(job.folder, (now, share))
        self.shares[job.folder] = share
        self.lengths[job.folder] = place.total
        if share > first:
            self.paces[job.folder] = (now - begun) / (share - first) / place.total
        self.at_once = max(self.at_once, len(self.begun.keys() & self.waiting.keys()))

    def ended(self, outcome: Outcome) -> None:
        """A run has ended; one that failed says nothing of how long others take."""
        folder, result = outcome.job.folder, outcome.result
        self.waiting.pop(folder, None)
        if result is None:
            self.paces.pop(folder, None)
        elif result.machine is not None:
            self.lengths[folder] = result.iterations
            self.paces[folder] = result.machine.seconds / result.iterations

    def left(self, job: Job) -> float | None:
        """Seconds until this run ends, or None where nothing is known yet."""
        return self._left([job.folder])[0]

    def left_of_all(self) -> float | None:
        """Seconds until all have ended: so many at a time as have been, but no run is faster for being the last."""
        each = [left for left in self._left(self.waiting) if left is not None]
        if len(each) < len(self.waiting):
            return None
        return max([sum(each) / min(self.at_once, len(each)), *each]) if each else 0.0

    def _left(self, folders: Iterable[Path]) -> list[float | None]:
        pace, length = self._means(self.paces, PACE), self._means(self.lengths, LENGTH)
        left = list[float | None]()
        for folder in folders:
            seconds, iterations = pace(folder), length(folder)
            if seconds is None or iterations is None:
                left.append(None)
            else:
                left.append(seconds * iterations * (1 - self.shares.get(folder, 0.0)))
        return left

    def _means(self, known: dict[Path, float], kinds: Sequence[Kind]) -> Callable[[Path], float | None]:
        """A run's own value, else the mean of those most like it."""
        groups: dict[tuple[int, object], list[float]] = {}
        for folder, value in known.items():
            for i, kind in enumerate(kinds):
                groups.setdefault((i, kind(self.configs[folder])), []).append(value)
        means = {group: statistics.fmean(values) for group, values in groups.items()}

        def mean(folder: Path) -> float | None:
            if folder in known:
                return known[folder]
            alike = (means.get((i, kind(self.configs[folder]))) for i, kind in enumerate(kinds))
            return next((value for value in alike if value is not None), None)

        return mean
