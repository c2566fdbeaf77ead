"""Progress of many runs: bars with an estimate on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBars

from bgd.experiments.estimate import Estimate
from bgd.experiments.text import duration
from bgd.runs.executors import Job, Outcome
from bgd.runs.progress import Progress

MAX_BARS = 12  # of single runs
REFRESHES = 4  # a second: drawing takes time from runs in this process
WIDE = 130  # columns of a terminal with room for everything
MARGIN = 20  # columns for the time left and for separators


class Display(Protocol):
    """Shows what an executor reports."""

    def __enter__(self) -> Display: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def update(self, job: Job, progress: Progress) -> None:
        """A run has reported progress."""

    def end(self, outcome: Outcome) -> None:
        """A run has ended."""


def describe_outcome(outcome: Outcome) -> str:
    """The outcome of a run in one line.

    >>> from pathlib import Path
    >>> from bgd.runs.config import RunConfig
    >>> describe_outcome(Outcome(Job(RunConfig(method="sgd"), Path("x")), error="the disk is full"))
    'sgd, seed 0: FAILED: the disk is full'
    """
    title, result = outcome.job.config.title, outcome.result
    if result is None:
        return f"{title}: {'stopped' if outcome.interrupted else 'FAILED'}: {outcome.error}"
    seconds = f" in {duration(result.machine.seconds)}" if result.machine else ""
    warning = "; NOTE: " + result.warnings[0].split(".")[0] if result.warnings else ""
    return f"{title}: {100 * result.average_accuracy:.2f} %{seconds}{warning}"


def describe_stage(progress: Progress) -> list[str]:
    """The task and activity of a run, from the longest description to the shortest.

    >>> describe_stage(Progress(812, 1876, 3, 5, "digits 4, 5", "evaluating"))
    ['task 3/5 (digits 4, 5), evaluating', 'task 3/5, evaluating', 'evaluating']
    >>> describe_stage(Progress(812, 1876, 3, 5, "digits 4, 5")), describe_stage(Progress(812, 1876))
    (['task 3/5 (digits 4, 5)', 'task 3/5'], [''])
    """
    if progress.tasks < 2:
        return [progress.activity]
    task = f"task {progress.task}/{progress.tasks}"
    doing = f", {progress.activity}" if progress.activity else ""
    return [f"{task} ({progress.name}){doing}", f"{task}{doing}", *filter(None, [progress.activity])]


def fit_line(title: str, progress: Progress, width: int) -> str:
    """A run and its stage in so many columns: the task's name is dropped first, then the middle of the title.

    >>> progress = Progress(812, 1876, 3, 5, "digits 4, 5")
    >>> fit_line("BGD, class, seed 2019", progress, 60)
    'BGD, class, seed 2019  task 3/5 (digits 4, 5)'
    >>> fit_line("BGD, class, seed 2019", progress, 38)
    'BGD, class, seed 2019  task 3/5'
    >>> fit_line("Online EWC, continuous permuted, seed 2019", progress, 38)
    'Online EWC, con…, seed 2019  task 3/5'
    """
    stages = describe_stage(progress)
    for stage in stages:
        if len(line := f"{title}  {stage}".rstrip()) <= width:
            return line
    stage = stages[-1]
    kept = max(width - len(stage) - 3, 8)  # of the title: its end is the seed
    end = min(len(title.rpartition(",")[2]) + 1, kept // 2)
    short = title if len(title) <= kept else f"{title[: kept - end - 1].rstrip(', ')}…{title[-end:]}"
    return f"{short}  {stage}".rstrip()


def describe_left(seconds: float | None) -> str:
    """Time left, no finer than it is known.

    >>> [describe_left(s) for s in (0.4, 41.7, 100, 4000, None)]
    ['1 s left', '42 s left', '2 min left', '1 h 7 min left', '']
    """
    if not seconds:
        return ""
    rounded = max(1, round(seconds)) if seconds < 60 else 60 * round(seconds / 60)
    return f"{duration(rounded).replace('.0', '')} left"


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, job: Job, progress: Progress) -> None:
        """Show nothing."""

    def end(self, outcome: Outcome) -> None:
        """Show nothing."""


class Lines:
    """A line when a run ends, and one a minute in between: for files and pipes."""

    def __init__(self, console: Console, jobs: Sequence[Job], every: float = 60.0) -> None:
        self.console, self.total, self.every = console, len(jobs), every
        self.estimate = Estimate(jobs)
        self.count = 0
        self.printed = time.monotonic()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, job: Job, progress: Progress) -> None:
        """Print the progress of a run, now and then."""
        self.estimate.update(job, progress)
        if time.monotonic() - self.printed >= self.every:
            self.printed = time.monotonic()
            parts = [
                describe_stage(progress)[0].replace("/", " of ", 1),
                f"iteration {progress.iteration:,} of {progress.total:,}",
            ]
            if left := describe_left(self.estimate.left(job)):
                parts.append(f"about {left}")
            if self.total > 1 and (left := describe_left(self.estimate.left_of_all())):
                parts.append(f"of all runs about {left}")
            self._print(f"        {job.config.title}: {', '.join(filter(None, parts))}")

    def end(self, outcome: Outcome) -> None:
        """Print the outcome of a run."""
        self.estimate.end(outcome)
        self.count += 1
        self._print(f"[{self.count}/{self.total}] {describe_outcome(outcome)}")

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bars:
    """A bar over all runs with an estimate of the time left, and one for each running run, with its task."""

    def __init__(self, console: Console, jobs: Sequence[Job]) -> None:
        self.console, self.total = console, len(jobs)
        self.estimate = Estimate(jobs)
        wide = console.width >= WIDE
        bar = 30 if wide else 10
        self.bars = ProgressBars(
            TextColumn("{task.description}"),
            BarColumn(bar),
            TextColumn("{task.fields[so_far]}", justify="right"),
            *([TimeElapsedColumn()] if wide else []),
            TextColumn("{task.fields[left]}", style="cyan"),
            console=console,
            transient=True,
            refresh_per_second=REFRESHES,
        )
        self.width = console.width - bar - MARGIN - (8 if wide else 0)
        self.longest = self.digits = 0
        self.runs: dict[str, TaskID] = {}
        self.shares: dict[str, float] = {}
        self.count = 0

    def __enter__(self) -> Bars:
        self.bars.start()
        self.all = self.bars.add_task("[bold]all runs", total=self.total, so_far=f"0/{self.total}", left="starting")
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def update(self, job: Job, progress: Progress) -> None:
        """Move the run's bar and the one over all."""
        self.estimate.update(job, progress)
        key = str(job.folder)
        if key in self.runs or len(self.runs) < MAX_BARS:
            # widths never shrink, so that bars do not jump
            self.digits = max(self.digits, len(f"{progress.total:,}"))
            line = fit_line(job.config.title, progress, self.width - 2 * self.digits)
            self.longest = max(self.longest, len(line))
            shown: dict[str, Any] = {
                "completed": progress.iteration,
                "description": escape(line.ljust(self.longest)),
                "so_far": f"{progress.iteration:,}/{progress.total:,}",
                "left": describe_left(self.estimate.left(job)),
            }
            if key in self.runs:
                self.bars.update(self.runs[key], **shown)
            else:
                self.runs[key] = self.bars.add_task(total=progress.total, **shown)
        self.shares[key] = progress.iteration / progress.total
        self._update_total()

    def end(self, outcome: Outcome) -> None:
        """Replace the run's bar by a line."""
        self.estimate.end(outcome)
        key = str(outcome.job.folder)
        if key in self.runs:
            self.bars.remove_task(self.runs.pop(key))
        self.shares.pop(key, None)
        self.count += 1
        self._update_total()
        style = None if outcome.result else "red"
        line = f"[{self.count}/{self.total}] {describe_outcome(outcome)}"
        self.console.print(line, markup=False, highlight=False, style=style)

    def _update_total(self) -> None:
        # parts of runs count, so that the bar moves before the first run has ended
        self.bars.update(
            self.all,
            description=f"[bold]{'all runs'.ljust(self.longest)}",
            completed=self.count + sum(self.shares.values()),
            so_far=f"{self.count}/{self.total}",
            left=describe_left(self.estimate.left_of_all()),
        )


def make_display(jobs: Sequence[Job], quiet: bool) -> Display:
    """The display that fits the terminal: on stderr, since stdout is for results.

    >>> type(make_display([], quiet=True)).__name__
    'Silent'
    """
    if quiet:
        return Silent()
    console = Console(stderr=True)
    return Bars(console, jobs) if console.is_terminal else Lines(console, jobs)
