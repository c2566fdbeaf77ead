"""The paper's values against ours, all in one figure: what agrees lies on the diagonal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from bgd.report.figures.axes import WIDTH, figure_of, fix_layout, new_axes, set_title, set_tooltip
from bgd.report.figures.style import COLOURS, GRID, QUIET, style
from bgd.report.figures.types import Plot
from bgd.report.statistics import Summary
from bgd.report.verdicts import Item, Outcome, PaperCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = {Outcome.AS_STATED: "o", Outcome.WITH_DEVIATION: "D", Outcome.OPEN: "X"}
TITLE = "The paper's accuracies, and ours"


class Point(NamedTuple):
    """A value that was run at a scale that can be compared."""

    label: str
    outcome: Outcome
    paper: float
    ours: float
    emphasised: bool


def plot_agreement(items: Sequence[Item]) -> Iterator[Plot]:
    """One figure of all values that were compared; none without any.

    >>> list(plot_agreement([]))
    []
    """
    points = [point for item in items for cell in item.cells if (point := _point(cell))]
    if not points:
        return
    counts = {outcome: sum(point.outcome is outcome for point in points) for outcome in MARKS}
    yield Plot(
        "agreement",
        TITLE,
        "Each mark is a value that the paper prints and that was run at a scale that can be compared, BGD's in full "
        "colour. On the line both are the same. With a deviation: its mean.",
        "; ".join(f"{outcome}: {count}" for outcome, count in counts.items()) + ".",
        partial(draw_agreement, points),
    )


def _point(cell: PaperCell) -> Point | None:
    evidence = cell.agreeing_deviation if cell.outcome is Outcome.WITH_DEVIATION else cell.as_stated
    if evidence is None and cell.outcome is Outcome.OPEN:
        evidence = max(cell.deviating, key=lambda one: len(one.entry.runs), default=None)
    ours: Summary | None = evidence.entry.ours if evidence else None
    if ours is None or cell.outcome not in MARKS:
        return None
    emphasised = cell.row == "BGD" or cell.row.startswith("BGD,")
    return Point(f"{cell.row}, {cell.column}", cell.outcome, cell.paper.mean, ours.mean, emphasised)


def draw_agreement(points: Sequence[Point]) -> Figure:
    """Paper's on the x axis, ours on the y axis.

    >>> figure = draw_agreement([Point("BGD, class", Outcome.OPEN, 46.3, 55.0, True)])
    >>> figure.axes[0].get_xlabel()
    'paper, %'
    """
    with style():
        ax = new_axes(WIDTH, 3.9)
        ax.plot([0, 100], [0, 100], color=GRID, zorder=1)
        for number, (outcome, marker) in enumerate(MARKS.items()):
            _draw_marks(ax, [point for point in points if point.outcome is outcome], marker, COLOURS[number], outcome)
        set_title(figure_of(ax), TITLE)
        ax.set(xlabel="paper, %", ylabel="ours, %", xlim=(10, 102), ylim=(10, 102))
        ax.set_aspect("equal")
        figure_of(ax).legend(loc="outside lower left", ncols=1, fontsize=8)
        return fix_layout(figure_of(ax))


def _draw_marks(ax: Axes, points: Sequence[Point], marker: str, colour: str, outcome: Outcome) -> None:
    for point in points:
        alpha, edge = (1.0, QUIET) if point.emphasised else (0.4, "none")
        (mark,) = ax.plot(
            point.paper, point.ours, marker, color=colour, markersize=6, alpha=alpha, markeredgecolor=edge, zorder=3
        )
        set_tooltip(mark, f"{point.label}: paper {point.paper:.2f}, ours {point.ours:.2f}")
    ax.plot([], [], marker, color=colour, markersize=6, label=f"{outcome} ({len(points)})")
