"""What ``bgd watch`` shows: a table that is drawn again and again in a terminal, else plain lines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from bgd.streams.watching import Outcome, Watcher

PLAIN_SECONDS = 5.0


def describe(watcher: Watcher) -> list[tuple[str, str]]:
    """The facts of a stream so far, by name.

    >>> from bgd.streams.watching import Watcher
    >>> dict(describe(Watcher("rain")))["lines"]
    '0'
    """
    counts, tested = watcher.counts, max(watcher.counts.tested, 1)
    facts = [("lines", f"{counts.lines:,}"), ("learnt", f"{counts.learnt:,}")]
    facts += [("without a label", f"{counts.unlabelled:,}")] * bool(counts.unlabelled)
    facts += [("malformed", f"{counts.malformed:,} ({counts.last_error})")] * bool(counts.malformed)
    if counts.tested:
        if watcher.regression:
            error = f"{counts.errors / tested:.4g}, lately {counts.recent_error:.4g}"
            facts.append(("mean absolute error", error))
        else:
            right = f"{100 * (1 - counts.errors / tested):.2f} %, lately {100 * (1 - counts.recent_error):.1f} %"
            facts.append(("accuracy", right))
        facts.append(("surprise, nats", f"{counts.surprise / tested:.3f}, lately {counts.recent_surprise:.3f}"))
        facts.append(("uncertainty, lately", f"{counts.recent_std:.3g}"))
        facts.append(("score of change", f"{watcher.estimator.drift_:.2g}"))
    alarms = watcher.counts.raised
    lately = ", ".join(f"{alarm['line']:,} ({alarm['of']})" for alarm in counts.alarms[-3:])
    facts.append(("alarms", f"{alarms}, the last at {lately}" if alarms else "none"))
    return facts


class Silent:
    """Shows nothing."""

    def show(self, watcher: Watcher, outcome: Outcome | None) -> None:
        """Nothing."""

    def close(self, watcher: Watcher) -> None:
        """Nothing."""


class PlainView:
    """A line every few seconds, and one for each alarm."""

    def __init__(self) -> None:
        self._next = time.monotonic() + PLAIN_SECONDS
        self._shown = -1

    def show(self, watcher: Watcher, outcome: Outcome | None) -> None:
        """Print what is due."""
        if outcome is not None and outcome.alarm is not None:
            what = "uncertainty" if outcome.surprise is None else "surprise"
            print(f"ALARM at line {outcome.line:,}: the {what} rose", flush=True)
        if time.monotonic() >= self._next and watcher.counts.lines != self._shown:
            self._print(watcher)

    def close(self, watcher: Watcher) -> None:
        """Print the last state."""
        self._print(watcher)

    def _print(self, watcher: Watcher) -> None:
        print("; ".join(f"{name} {value}" for name, value in describe(watcher)), flush=True)
        self._next, self._shown = time.monotonic() + PLAIN_SECONDS, watcher.counts.lines


class LiveView:
    """A table that stays where it is; alarms are in red."""

    def __init__(self) -> None:
        self._live = Live(console=Console(), refresh_per_second=4, transient=False)
        self._live.start()
        self._next = 0.0

    def show(self, watcher: Watcher, outcome: Outcome | None) -> None:
        """Draw it again, a few times a second."""
        if time.monotonic() >= self._next or (outcome is not None and outcome.alarm is not None):
            self._live.update(_draw(watcher))
            self._next = time.monotonic() + 0.25

    def close(self, watcher: Watcher) -> None:
        """Leave the last state on the screen."""
        self._live.update(_draw(watcher))
        self._live.stop()


def _draw(watcher: Watcher) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for name, value in describe(watcher):
        alarmed = name == "alarms" and bool(watcher.counts.alarms)
        table.add_row(Text(name, style="dim"), Text(value, style="bold red" if alarmed else ""))
    return Group(Text(f"bgd watch: {watcher.target}", style="bold"), table)
