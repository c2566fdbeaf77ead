"""Show what is being fetched: a bar on a terminal, one plain line elsewhere; always on stderr."""

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


def print_line(message: str) -> None:
    """Print a line on stderr, as it is: rich could mistake a part of a path for markup."""
    Console(stderr=True).print(message, markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def show_spinner(label: str) -> Iterator[None]:
    """Show that something of unknown size is being fetched: a spinner on a terminal.

    >>> with show_spinner("a package"):
    ...     pass
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        print_line(f"fetching {label}")
    with console.status(f"fetching {label}"):
        yield


class ProgressBar:
    """Progress of one transfer; ``update`` may go back when a transfer starts again.

    >>> with ProgressBar("mnist") as bar:
    ...     bar.update(512, total=1024)
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

    def __enter__(self) -> ProgressBar:
        if self._console.is_terminal:
            self._progress.start()
        else:
            print_line(f"fetching {self._label}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._progress.stop()

    def update(self, done: int, total: int | None = None) -> None:
        """Set the number of bytes received, and the total if it is known."""
        self._progress.update(self._task, completed=done, total=total)
