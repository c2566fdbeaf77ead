"""``bgd watch``: predict and learn a live stream, line by line."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer
from rich.console import Console

from bgd.cli.watch_view import LiveView, PlainView, Silent
from bgd.runs.stop import StopRequest, stop_requests
from bgd.streams.lines import GrowingFile, LineError, Pipe, Source

if TYPE_CHECKING:
    from bgd.streams.watching import Outcome, Watcher

WAIT = 0.2  # seconds between looks at a file that does not grow


class View(Protocol):
    """What shows the stream to people."""

    def show(self, watcher: Watcher, outcome: Outcome | None) -> None:
        """After each line, and a few times a second."""

    def close(self, watcher: Watcher) -> None:
        """At the end."""


def watch(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file that may grow, or - for standard input.")],
    target: Annotated[str, typer.Option("--target", "-t", help="The column of the labels.", show_default=False)],
    regression: Annotated[bool, typer.Option("--regression", help="Predict numbers, not classes.")] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="A folder: saved there, and continued from there.", show_default=False),
    ] = None,
    save_every: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints.")] = 10.0,
    alarms_per: Annotated[
        int, typer.Option(min=100, help="On average at most one false alarm in so many lines.")
    ] = 10_000,
    follow: Annotated[bool, typer.Option(help="Wait for lines to be appended to the file.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each line.")] = False,
) -> None:
    """Watch a stream of lines: predict each, learn it where it has a label, and raise an alarm when the world changes.

    Lines are CSV, the first with the names of the columns, or JSON objects. A line whose label is empty is predicted
    only. A malformed line is counted and named. Ctrl-C saves and ends, and the same command continues with the next
    line of the file; standard input continues with the next line that comes.
    """
    from bgd.streams.watching import Watcher, load_watcher  # scikit-learn takes a second to import

    watcher = Watcher(target, regression=regression, alarm_every=alarms_per)
    position = load_watcher(watcher, checkpoint) if checkpoint else 0
    if file == "-":
        source: Source = Pipe(sys.stdin.buffer, position)
    else:
        source = GrowingFile(Path(file), position, follow=follow)
    view: View = Silent() if as_json else LiveView() if sys.stdout.isatty() else PlainView()
    with stop_requests() as stop:
        try:
            _watch(watcher, source, position, view, stop, checkpoint, save_every, as_json)
        finally:
            view.close(watcher)
            source.close()
    if stop.requested:
        raise typer.Exit(130)


def _watch(
    watcher: Watcher,
    source: Source,
    position: int,
    view: View,
    stop: StopRequest,
    checkpoint: Path | None,
    save_every: float,
    as_json: bool,
) -> None:
    from bgd.streams.watching import save_watcher

    saved, position_saved = time.monotonic(), position
    while not (stop.requested or source.ended):
        line = source.read(WAIT)
        if line is not None:
            _take(watcher, line.content, view, as_json)
            position = line.end
        else:
            view.show(watcher, None)
        if checkpoint and position > position_saved and time.monotonic() >= saved + save_every:
            save_watcher(watcher, checkpoint, position)
            saved, position_saved = time.monotonic(), position
    if checkpoint:
        save_watcher(watcher, checkpoint, position)


def _take(watcher: Watcher, content: bytes, view: View, as_json: bool) -> None:
    """One line; a malformed one is reported on stderr."""
    try:
        outcome = watcher.read(content)
    except LineError as error:
        if as_json:
            print(json.dumps({"line": watcher.counts.lines, "error": str(error)}), flush=True)
        else:
            Console(stderr=True).print(f"skipped {error}", style="yellow", markup=False, highlight=False)
        return
    if outcome is None:
        return
    if as_json:
        print(json.dumps({key: value for key, value in asdict(outcome).items() if value is not None}), flush=True)
    view.show(watcher, outcome)
