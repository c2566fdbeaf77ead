"""An estimate of the time left for many runs, which differ: BGD takes ten times as long as SGD.

The time left of a running run follows from its own speed; that of a waiting one from the speed of its method, and from
the length of runs like it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bgd.runs.config import RunConfig
from bgd.runs.executors import Job, Outcome
from bgd.runs.progress import Progress

Group = Callable[[RunConfig], object]
BY_SPEED: tuple[Group, ...] = (lambda c: (c.row, c.column), lambda c: c.row, lambda c: c.method, lambda _: None)
BY_LENGTH: tuple[Group, ...] = (lambda c: (c.row, c.column), lambda c: c.column, lambda _: None)
"""Groups of runs that are alike in seconds per iteration and in iterations, from the closest to the widest."""


class Estimate:
    """Follows runs and estimates the time left.

    >>> clock = iter([0.0, 10.0, 10.0]).__next__
    >>> jobs = [Job(RunConfig(method="sgd", seed=seed), Path(str(seed))) for seed in (1, 2)]
    >>> estimate = Estimate(jobs, clock)
    >>> estimate.update(jobs[0], Progress(0, 100))
    >>> estimate.update(jobs[0], Progress(25, 100))
    >>> estimate.left(jobs[0]), estimate.left_of_all()
    (30.0, 70.0)
    """

    def __init__(self, jobs: Sequence[Job], clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.configs = {job.folder: job.config for job in jobs}
        self.unfinished = dict(self.configs)
        self.started: dict[Path, tuple[float, float]] = {}  # time and share done at the first report of a run
        self.shares: dict[Path, float] = {}
        self.lengths: dict[Path, float] = {}  # iterations
        self.speeds: dict[Path, float] = {}  # seconds per iteration
        self.parallel = 1

    def update(self, job: Job, progress: Progress) -> None:
        """A run has reported progress."""
        now, share = self.clock(), progress.iteration / progress.total
        started, first = self.started.setdefault(job.folder, (now, share))
        self.shares[job.folder] = share
        self.lengths[job.folder] = progress.total
        if share > first:
            self.speeds[job.folder] = (now - started) / (share - first) / progress.total
        self.parallel = max(self.parallel, len(self.started.keys() & self.unfinished.keys()))

    def end(self, outcome: Outcome) -> None:
        """A run has ended; a failed one gives no information about the time of others."""
        folder, result = outcome.job.folder, outcome.result
        self.unfinished.pop(folder, None)
        if result is None:
            self.speeds.pop(folder, None)
        elif result.machine is not None:
            self.lengths[folder] = result.iterations
            self.speeds[folder] = result.machine.seconds / result.iterations

    def left(self, job: Job) -> float | None:
        """Seconds until this run ends, or None as long as nothing is known."""
        return self._left([job.folder])[0]

    def left_of_all(self) -> float | None:
        """Seconds until all have ended: as many in parallel as were seen, but no run is faster for being the last."""
        each = [left for left in self._left(self.unfinished) if left is not None]
        if len(each) < len(self.unfinished):
            return None
        return max([sum(each) / min(self.parallel, len(each)), *each]) if each else 0.0

    def _left(self, folders: Iterable[Path]) -> list[float | None]:
        speed, length = self._means(self.speeds, BY_SPEED), self._means(self.lengths, BY_LENGTH)
        left = list[float | None]()
        for folder in folders:
            seconds, iterations = speed(folder), length(folder)
            if seconds is None or iterations is None:
                left.append(None)
            else:
                left.append(seconds * iterations * (1 - self.shares.get(folder, 0.0)))
        return left

    def _means(self, known: dict[Path, float], groups: Sequence[Group]) -> Callable[[Path], float | None]:
        """A run's own value, or else the mean over the runs most like it."""
        values: dict[tuple[int, object], list[float]] = {}
        for folder, value in known.items():
            for i, group in enumerate(groups):
                values.setdefault((i, group(self.configs[folder])), []).append(value)
        means = {group: statistics.fmean(members) for group, members in values.items()}

        def mean(folder: Path) -> float | None:
            if folder in known:
                return known[folder]
            alike = (means.get((i, group(self.configs[folder]))) for i, group in enumerate(groups))
            return next((value for value in alike if value is not None), None)

        return mean
