"""Say what is being fetched: a bar on a terminal, one plain line elsewhere; always on stderr."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


def say(message: str) -> None:
    """Print a line on stderr, as it is: a path may hold what rich would take for markup."""
    Console(stderr=True).print(message, markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def waiting(label: str) -> Iterator[None]:
    """Say that something is being fetched of which no progress is known: a spinner on a terminal.

    >>> with waiting("a package"):
    ...     pass
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        say(f"fetching {label}")
    with console.status(f"fetching {label}"):
        yield


class Bar:
    """Progress of one transfer; ``at`` may go back when a transfer starts over.

    >>> with Bar("mnist") as bar:
    ...     bar.at(512, total=1024)
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=self._console, transient=True)
        self._task = self._progress.add_task(label, total=None)

    def __enter__(self) -> Bar:
        if self._console.is_terminal:
            self._progress.start()
        else:
            say(f"fetching {self._label}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._progress.stop()

    def at(self, done: int, total: int | None = None) -> None:
        """Say how many bytes are there, and how many there will be if that is known."""
        self._progress.update(self._task, completed=done, total=total)
