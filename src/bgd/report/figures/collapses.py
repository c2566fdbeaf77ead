"""How many runs collapsed: the share of each method with its interval, a panel for each setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from bgd.report.figures.axes import WIDTH, figure_of, fix_layout, set_title, set_tooltip
from bgd.report.figures.labels import describe_items, looks_of, row_label
from bgd.report.figures.style import Look, style
from bgd.report.figures.types import Plot
from bgd.report.statistics import binomial_interval
from bgd.report.summary.types import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Counts = Mapping[str, tuple[int, int]]
"""Of each label: collapsed runs, all runs."""


def plot_collapses(comparison: Comparison) -> Iterator[Plot]:
    """One figure for all settings; only where the experiment counts collapses."""
    if not (comparison.experiment and comparison.experiment.counts_collapses and comparison.runs):
        return
    panels: dict[str, Counts] = {
        column: {row_label(comparison, e.row): (e.warned, len(e.runs)) for e in comparison.column(column) if e.runs}
        for column in comparison.columns
    }
    panels = {column: counts for column, counts in panels.items() if counts}
    title = "Runs that collapsed"
    yield Plot(
        "collapses",
        title,
        "The share of runs whose posterior collapsed, with its 95 % interval (Clopper and Pearson); numbers are "
        "collapsed runs of all.",
        describe_items(
            (f"{column}, {label}", f"{collapsed} of {n}")
            for column, counts in panels.items()
            for label, (collapsed, n) in counts.items()
        ),
        partial(draw_collapses, panels, looks_of(comparison), title=title),
    )


def draw_collapses(panels: Mapping[str, Counts], looks: Mapping[str, Look], *, title: str) -> Figure:
    """A dot and its interval for each label; panels one above the other, since labels are long.

    Args:
        panels: counts by setting, from top to bottom.
        looks: of every label.
        title: of the figure.

    >>> figure = draw_collapses({"std 0.06": {"ten": (3, 20)}}, {"ten": Look("#000000", "-", "o")}, title="t")
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['3 of 20']
    """
    from matplotlib.figure import Figure

    sizes = [len(counts) for counts in panels.values()]
    with style():
        figure = Figure(figsize=(WIDTH, 0.9 + sum(0.4 + 0.26 * size for size in sizes)), layout="constrained")
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=[size + 0.4 for size in sizes])
        for ax, (column, counts) in zip(axes[:, 0], panels.items(), strict=True):
            if len(panels) > 1:
                ax.set_title(column, loc="left", fontsize=9)
            for y, (label, (collapsed, n)) in enumerate(counts.items()):
                _draw_share(ax, y, label, collapsed, n, looks[label])
            ax.set_yticks(range(len(counts)), list(counts))
            ax.set_ylim(len(counts) - 0.5, -0.5)
            ax.set_xlim(-3, 120)  # with room for the counts
            ax.set_xticks(range(0, 101, 20))
            ax.grid(visible=False, axis="y")
            ax.tick_params(axis="y", length=0)
            ax.spines["left"].set_visible(False)
        axes[-1, 0].set_xlabel("collapsed, %")
        set_title(figure, title)
        return fix_layout(figure_of(axes[0, 0]))


def _draw_share(ax: Axes, y: int, label: str, collapsed: int, n: int, look: Look) -> None:
    share, (low, high) = 100 * collapsed / n, binomial_interval(collapsed, n)
    bar = ax.errorbar(
        share,
        y,
        xerr=[[share - 100 * low], [100 * high - share]],
        fmt=look.marker,
        color=look.colour,
        markersize=6,
        elinewidth=1.6,
        zorder=4,
        clip_on=False,
    )
    set_tooltip(bar.lines[0], f"{label}: {collapsed} of {n}")
    ax.text(100 * high + 3, y, f"{collapsed} of {n}", va="center", size=8)
