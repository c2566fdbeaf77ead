"""Accuracy at the end, ours beside the paper's: a dot with whiskers over a band, a row for each method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bgd.report import formatting
from bgd.report.figures.axes import WIDTH, figure_of, fix_layout, new_axes, set_title, set_tooltip
from bgd.report.figures.labels import (
    column_file_suffix,
    column_suffix,
    describe_items,
    describe_seeds,
    has_spread,
    looks_of,
    row_label,
)
from bgd.report.figures.style import GRID, INK, QUIET, Look, assign_looks, style
from bgd.report.figures.types import Plot
from bgd.report.statistics import Summary
from bgd.report.summary.types import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_accuracy_at_end(comparison: Comparison) -> Iterator[Plot]:
    """A figure for each column that has the paper's values, or too many rows to compare in a table."""
    for column in comparison.columns:
        entries = [e for e in comparison.column(column) if e.ours or e.paper]
        paper = any(e.paper for e in entries)
        if len(entries) < (2 if paper else 7):
            continue
        title = "Accuracy at the end" + column_suffix(comparison, column)
        rows = [(row_label(comparison, e.row), e.ours, e.paper) for e in entries]
        yield Plot(
            f"results{column_file_suffix(comparison, column)}",
            title,
            "Average accuracy over all tasks at the end"
            + (": our means, with whiskers of one standard deviation over seeds." if has_spread(entries) else ".")
            + " Grey bands are the paper's mean and spread." * paper
            + describe_seeds(entries),
            describe_items(
                (e.row, formatting.value(e.ours) + (f", paper {formatting.value(e.paper)}" if e.paper else ""))
                for e in entries
            ),
            partial(draw_forest, rows, looks_of(comparison), title=title),
        )


def draw_forest(
    rows: Sequence[tuple[str, Summary | None, Summary | None]],
    looks: Mapping[str, Look] | None = None,
    *,
    title: str,
    xlabel: str = "accuracy, %",
) -> Figure:
    """Our mean and spread as a dot with whiskers, the paper's as a band behind it.

    Args:
        rows: (label, ours, paper's), from top to bottom; either may be None.
        looks: of every label; by default in the order of the rows.
        title: of the figure.
        xlabel: of the x axis.

    >>> figure = draw_forest([("BGD", Summary(46.2, 2.0, 10), Summary(46.34, 2.36, 10))], title="t")
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['BGD']
    """
    looks = looks if looks is not None else assign_looks([label for label, _, _ in rows])
    with style():
        ax = new_axes(WIDTH, 0.95 + 0.27 * max(len(rows), 2))
        ax.use_sticky_edges = False  # the lowest band does not begin at the axis
        for y, (label, ours, paper) in enumerate(rows):
            if paper is not None:
                half = paper.spread or 0.0
                ax.barh(y, 2 * half, left=paper.mean - half, height=0.62, color=GRID, zorder=2)
                ax.plot([paper.mean] * 2, [y - 0.31, y + 0.31], color=QUIET, linewidth=1.6, zorder=3)
            if ours is not None and np.isfinite(ours.mean):
                _draw_ours(ax, y, label, ours, looks[label])
        ax.set_yticks(range(len(rows)), [label for label, _, _ in rows])
        for text, (label, _, _) in zip(ax.get_yticklabels(), rows, strict=True):
            text.set_fontweight(looks[label].weight)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        if xlabel.endswith("%"):  # no accuracy lies outside, however wide the spread
            left, right = ax.get_xlim()
            ax.set_xlim(max(left, -3), min(right, 103))
        set_title(figure_of(ax), title)
        ax.set_xlabel(xlabel)
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        if any(paper is not None for _, _, paper in rows):
            _add_legend(figure_of(ax))
        return fix_layout(figure_of(ax))


def _draw_ours(ax: Axes, y: int, label: str, ours: Summary, look: Look) -> None:
    bar = ax.errorbar(
        ours.mean,
        y,
        xerr=ours.spread or 0.0,
        fmt=look.marker,
        color=look.colour,
        markersize=6,
        elinewidth=1.6,
        zorder=4,
    )
    set_tooltip(bar.lines[0], f"{label}: {formatting.value(ours)}")


def _add_legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    key: list[Line2D | Patch] = [
        Line2D([], [], color=INK, marker="o", linestyle="-", linewidth=1.6),
        Patch(color=GRID),
    ]
    names = ["ours", "paper, mean ± spread"]
    figure.legend(key, names, loc="outside lower left", ncols=2, fontsize=8, handlelength=1.6)
