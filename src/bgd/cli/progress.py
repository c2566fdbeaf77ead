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

from bgd.cli.estimate import Estimate
from bgd.report import formatting
from bgd.runs.executors import Job, Outcome
from bgd.runs.progress import Progress

SHOWN = 12  # bars of single runs at a time
FRAMES = 4  # a second: drawing them takes the time of runs in this process
WIDE = 130  # columns of a terminal with room for everything
LEFT = 20  # columns for the time left and what separates all others


class Display(Protocol):
    """Told of what happens; shows it somehow."""

    def __enter__(self) -> Display: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def progress(self, job: Job, place: Progress) -> None:
        """A run has come so far."""

    def ended(self, outcome: Outcome) -> None:
        """A run has ended."""


def describe(outcome: Outcome) -> str:
    """One line on what became of a run.

    >>> from pathlib import Path
    >>> from bgd.runs.config import RunConfig
    >>> describe(Outcome(Job(RunConfig(method="sgd"), Path("x")), error="the disk is full"))
    'sgd, seed 0: FAILED: the disk is full'
    """
    title, result = outcome.job.config.title, outcome.result
    if result is None:
        return f"{title}: {'stopped' if outcome.interrupted else 'FAILED'}: {outcome.error}"
    seconds = f" in {formatting.duration(result.machine.seconds)}" if result.machine else ""
    collapsed = "; NOTE: " + result.warnings[0].split(".")[0] if result.warnings else ""
    return f"{title}: {100 * result.average_accuracy:.2f} %{seconds}{collapsed}"


def at(place: Progress) -> list[str]:
    """What a run is at, from the most that can be said to the least.

    >>> at(Progress(812, 1876, 3, 5, "digits 4, 5", "evaluating"))
    ['task 3/5 (digits 4, 5), evaluating', 'task 3/5, evaluating', 'evaluating']
    >>> at(Progress(812, 1876, 3, 5, "digits 4, 5")), at(Progress(812, 1876))
    (['task 3/5 (digits 4, 5)', 'task 3/5'], [''])
    """
    if place.tasks < 2:
        return [place.activity]
    task = f"task {place.task}/{place.tasks}"
    doing = f", {place.activity}" if place.activity else ""
    return [f"{task} ({place.name}){doing}", f"{task}{doing}", *filter(None, [place.activity])]


def fitted(title: str, place: Progress, room: int) -> str:
    """A run and what it is at, in so many columns: the task's name goes first, then the middle of the title.

    >>> place = Progress(812, 1876, 3, 5, "digits 4, 5")
    >>> fitted("BGD, class, seed 2019", place, 60)
    'BGD, class, seed 2019  task 3/5 (digits 4, 5)'
    >>> fitted("BGD, class, seed 2019", place, 38)
    'BGD, class, seed 2019  task 3/5'
    >>> fitted("Online EWC, continuous permuted, seed 2019", place, 38)
    'Online EWC, con…, seed 2019  task 3/5'
    """
    versions = at(place)
    for version in versions:
        if len(line := f"{title}  {version}".rstrip()) <= room:
            return line
    version = versions[-1]
    kept = max(room - len(version) - 3, 8)  # of the title: its end tells the seed
    end = min(len(title.rpartition(",")[2]) + 1, kept // 2)
    short = title if len(title) <= kept else f"{title[: kept - end - 1].rstrip(', ')}…{title[-end:]}"
    return f"{short}  {version}".rstrip()


def about(seconds: float | None) -> str:
    """Time left, no finer than it is known.

    >>> about(0.4), about(41.7), about(100), about(4000), about(None)
    ('1 s left', '42 s left', '2 min left', '1 h 7 min left', '')
    """
    if not seconds:
        return ""
    return (
        formatting.duration(max(1, round(seconds)) if seconds < 60 else 60 * round(seconds / 60)).replace(".0", "")
        + " left"
    )


class Silence:
    """Shows nothing."""

    def __enter__(self) -> Silence:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def progress(self, job: Job, place: Progress) -> None:
        """Nothing."""

    def ended(self, outcome: Outcome) -> None:
        """Nothing."""


class Lines:
    """A line when a run ends, and one a minute in between: for files and pipes."""

    def __init__(self, console: Console, jobs: Sequence[Job], every: float = 60.0) -> None:
        self.console, self.total, self.every = console, len(jobs), every
        self.estimate = Estimate(jobs)
        self.count = 0
        self.said = time.monotonic()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def progress(self, job: Job, place: Progress) -> None:
        """At times, how far a run has come."""
        self.estimate.moved(job, place)
        if time.monotonic() - self.said >= self.every:
            self.said = time.monotonic()
            parts = [at(place)[0].replace("/", " of ", 1), f"iteration {place.iteration:,} of {place.total:,}"]
            if left := about(self.estimate.left(job)):
                parts.append(f"about {left}")
            if self.total > 1 and (left := about(self.estimate.left_of_all())):
                parts.append(f"of all runs about {left}")
            self._print(f"        {job.config.title}: {', '.join(filter(None, parts))}")

    def ended(self, outcome: Outcome) -> None:
        """What became of the run."""
        self.estimate.ended(outcome)
        self.count += 1
        self._print(f"[{self.count}/{self.total}] {describe(outcome)}")

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bars:
    """A bar over all runs with an estimate of the time left, and one for each run at work, with its task."""

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
            refresh_per_second=FRAMES,
        )
        self.room = console.width - bar - LEFT - (8 if wide else 0)
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

    def progress(self, job: Job, place: Progress) -> None:
        """Move the run's bar and the one over all."""
        self.estimate.moved(job, place)
        key = str(job.folder)
        if key in self.runs or len(self.runs) < SHOWN:
            # never less than before, so that bars stay where they are
            self.digits = max(self.digits, len(f"{place.total:,}"))
            line = fitted(job.config.title, place, self.room - 2 * self.digits)
            self.longest = max(self.longest, len(line))
            shown: dict[str, Any] = {
                "completed": place.iteration,
                "description": escape(line.ljust(self.longest)),
                "so_far": f"{place.iteration:,}/{place.total:,}",
                "left": about(self.estimate.left(job)),
            }
            if key in self.runs:
                self.bars.update(self.runs[key], **shown)
            else:
                self.runs[key] = self.bars.add_task(total=place.total, **shown)
        self.shares[key] = place.iteration / place.total
        self._over_all()

    def ended(self, outcome: Outcome) -> None:
        """Replace the run's bar by a line."""
        self.estimate.ended(outcome)
        key = str(outcome.job.folder)
        if key in self.runs:
            self.bars.remove_task(self.runs.pop(key))
        self.shares.pop(key, None)
        self.count += 1
        self._over_all()
        style = None if outcome.result else "red"
        self.console.print(
            f"[{self.count}/{self.total}] {describe(outcome)}", markup=False, highlight=False, style=style
        )

    def _over_all(self) -> None:
        # parts of runs count, so that the bar moves before the first run has ended
        self.bars.update(
            self.all,
            description=f"[bold]{'all runs'.ljust(self.longest)}",
            completed=self.count + sum(self.shares.values()),
            so_far=f"{self.count}/{self.total}",
            left=about(self.estimate.left_of_all()),
        )


def display(jobs: Sequence[Job], quiet: bool) -> Display:
    """The display that fits: on stderr, so that stdout is left to results.

    >>> type(display([], quiet=True)).__name__
    'Silence'
    """
    if quiet:
        return Silence()
    console = Console(stderr=True)
    return Bars(console, jobs) if console.is_terminal else Lines(console, jobs)
