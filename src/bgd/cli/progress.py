"""Progress of many runs: bars with an estimate on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bgd.runs.executors import Job, Outcome

SHOWN = 12  # bars of single runs at a time


class Display(Protocol):
    """Told of what happens; shows it somehow."""

    def __enter__(self) -> Display: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def progress(self, job: Job, done: int, of: int) -> None:
        """A run has come so far."""

    def ended(self, outcome: Outcome) -> None:
        """A run has ended."""


def describe(outcome: Outcome) -> str:
    """One line on what became of a run.

    >>> from pathlib import Path
    >>> from bgd.runs.types import RunConfig
    >>> describe(Outcome(Job(RunConfig(method="sgd"), Path("x")), error="the disk is full"))
    'sgd, seed 0: FAILED: the disk is full'
    """
    title, result = outcome.job.config.title, outcome.result
    if result is None:
        return f"{title}: {'stopped' if outcome.interrupted else 'FAILED'}: {outcome.error}"
    seconds = f" in {duration(result.machine.seconds)}" if result.machine else ""
    collapsed = "; NOTE: " + result.warnings[0].split(".")[0] if result.warnings else ""
    return f"{title}: {100 * result.average_accuracy:.2f} %{seconds}{collapsed}"


def duration(seconds: float) -> str:
    """For people.

    >>> duration(4.23), duration(75), duration(7300)
    ('4.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Silence:
    """Shows nothing."""

    def __enter__(self) -> Silence:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def progress(self, job: Job, done: int, of: int) -> None:
        """Nothing."""

    def ended(self, outcome: Outcome) -> None:
        """Nothing."""


class Lines:
    """A line when a run ends, and one a minute in between: for files and pipes."""

    def __init__(self, console: Console, total: int, every: float = 60.0) -> None:
        self.console, self.total, self.every = console, total, every
        self.count = 0
        self.said = time.monotonic()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def progress(self, job: Job, done: int, of: int) -> None:
        """At times, how far a run has come."""
        if time.monotonic() - self.said >= self.every:
            self.said = time.monotonic()
            self._print(f"        {job.config.title}: iteration {done:,} of {of:,}")

    def ended(self, outcome: Outcome) -> None:
        """What became of the run."""
        self.count += 1
        self._print(f"[{self.count}/{self.total}] {describe(outcome)}")

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bars:
    """A bar over all runs with an estimate of the time left, and one for each run at work."""

    def __init__(self, console: Console, total: int) -> None:
        self.console, self.total = console, total
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self.runs: dict[str, TaskID] = {}
        self.shares: dict[str, float] = {}
        self.count = 0

    def __enter__(self) -> Bars:
        self.bars.start()
        self.all = self.bars.add_task("[bold]all runs", total=self.total)
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def progress(self, job: Job, done: int, of: int) -> None:
        """Move the run's bar and the one over all."""
        key = str(job.folder)
        if key not in self.runs and len(self.runs) < SHOWN:
            self.runs[key] = self.bars.add_task(escape(job.config.title), total=of)
        if key in self.runs:
            self.bars.update(self.runs[key], completed=done)
        self.shares[key] = done / of
        self._over_all()

    def ended(self, outcome: Outcome) -> None:
        """Replace the run's bar by a line."""
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
        # parts of runs count, so that the estimate is there before the first run has ended
        self.bars.update(self.all, completed=self.count + sum(self.shares.values()))


def display(total: int, quiet: bool) -> Display:
    """The display that fits: on stderr, so that stdout is left to results.

    >>> type(display(3, quiet=True)).__name__
    'Silence'
    """
    if quiet:
        return Silence()
    console = Console(stderr=True)
    return Bars(console, total) if console.is_terminal else Lines(console, total)
