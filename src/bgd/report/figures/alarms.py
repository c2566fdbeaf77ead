"""Alarms of change in a figure of accuracy over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bgd.report.figures.lines import Series, draw_lines
from bgd.report.figures.style import Look, style
from bgd.report.summary.types import Comparison
from bgd.runs.result import RunResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOUR = "#8a8f98"  # grey: on white and on black


@dataclass(frozen=True)
class Marks:
    """When alarms were raised, in iterations, and whose they are."""

    label: str
    iterations: tuple[float, ...]

    def describe(self) -> str:
        """A sentence for the caption.

        >>> Marks("BGD", (3.0,)).describe()
        ' Dotted: alarms of BGD, on its first seed.'
        """
        return f" Dotted: alarms of {self.label}, on its first seed."


def find_marks(comparison: Comparison, column: str) -> Marks | None:
    """The alarms of the learner with the highest accuracy in a column of a prequential stream; None without any."""
    runs = [entry.runs[0] for entry in comparison.column(column) if entry.runs and entry.runs[0].prequential]
    if not runs:
        return None
    best = max(runs, key=lambda run: run.average_accuracy)
    times = _iterations(best)
    return Marks(best.config.row or best.config.method, times) if times else None


def _iterations(run: RunResult) -> tuple[float, ...]:
    found = run.prequential
    return tuple(alarm.at / run.config.setup.stream.batch_size for alarm in found.alarms) if found else ()


def draw_with_alarms(
    curves: Mapping[str, Series], looks: Mapping[str, Look], marks: Sequence[float], title: str
) -> Figure:
    """Curves over iterations, and a dotted line at each alarm.

    >>> from bgd.report.figures.lines import make_series
    >>> from bgd.report.figures.style import assign_looks
    >>> curves = {"BGD": make_series([1, 9], [[90, 80]])}
    >>> len(draw_with_alarms(curves, assign_looks(["BGD"]), [3.0, 5.0], "t").axes[0].lines)
    3
    """
    figure = draw_lines(curves, looks, title=title, xlabel="iteration", whole_x=True)
    with style():
        for at in marks:
            figure.axes[0].axvline(at, color=COLOUR, linestyle=":", linewidth=1.2, zorder=1)
    return figure
