"""Accuracy on each task at the end: a panel of bars for each method, with the paper's values as lines across them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from bgd.report.figures.axes import WIDTH, fix_layout, set_title, set_tooltip, shorten_middle
from bgd.report.figures.labels import (
    column_file_suffix,
    column_suffix,
    describe_items,
    describe_seeds,
    has_spread,
    looks_of,
    row_label,
)
from bgd.report.figures.style import INK, QUIET, Look, assign_looks, style
from bgd.report.figures.types import Plot
from bgd.report.statistics import Summary
from bgd.report.summary.types import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_each_task(comparison: Comparison) -> Iterator[Plot]:
    """A figure for each column whose runs have several tasks, of the rows that have the same."""
    for column in comparison.columns:
        entries = [entry for entry in comparison.column(column) if len(entry.tasks) > 1]
        entries = [entry for entry in entries if list(entry.tasks) == list(entries[0].tasks)]
        if not entries:
            continue
        paper = any(e.reported and e.reported.tasks for e in entries)
        title = "Accuracy on each task at the end" + column_suffix(comparison, column)
        yield Plot(
            f"each-task{column_file_suffix(comparison, column)}",
            title,
            "Test accuracy on each task, in the order learnt, when all have been: earlier tasks are to the left."
            + " Whiskers are one standard deviation over seeds." * has_spread(entries)
            + " Lines across the bars are the paper's values." * paper
            + describe_seeds(entries),
            describe_items(
                (e.row, ", ".join(f"{name} {end.mean:.0f} %" for name, end in e.tasks.items())) for e in entries
            ),
            partial(
                draw_task_bars,
                [
                    (row_label(comparison, e.row), list(e.tasks.values()), e.reported.tasks if e.reported else ())
                    for e in entries
                ],
                list(entries[0].tasks),
                looks_of(comparison),
                title=title,
            ),
        )


def draw_task_bars(
    rows: Sequence[tuple[str, Sequence[Summary], Sequence[float]]],
    tasks: Sequence[str],
    looks: Mapping[str, Look] | None = None,
    *,
    title: str,
) -> Figure:
    """A small panel for each row with a bar for each task, and the paper's value as a line across the bar.

    Args:
        rows: (label, ours for each task, the paper's for each task or nothing), in order.
        tasks: their names.
        looks: of every label; by default in the order of the rows.
        title: of the figure.

    >>> figure = draw_task_bars([("BGD", [Summary(90, 1, 3), Summary(70, 1, 3)], [])], ["a", "b"], title="t")
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['90', '70']
    """
    from matplotlib.figure import Figure

    looks = looks if looks is not None else assign_looks([label for label, _, _ in rows])
    across = 2 if len(rows) > 1 else 1
    down = -(-len(rows) // across)
    long_names = max(map(len, tasks)) > 3
    with style():
        figure = Figure(figsize=(WIDTH, 0.75 + 1.25 * down + 0.5 * long_names), layout="constrained")
        panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
        for panel, (label, ours, paper) in zip(panels.flat, rows, strict=False):
            _draw_bars(panel, label, tasks, ours, paper, looks[label])
            if long_names:
                for text in panel.get_xticklabels():
                    text.set(rotation=40, ha="right", rotation_mode="anchor")
        for panel in panels.flat[len(rows) :]:
            panel.set_axis_off()
        figure.supylabel("accuracy, %", size=9)
        set_title(figure, title)
        if any(len(paper) for _, _, paper in rows):
            _add_legend(figure)
        return fix_layout(figure)


def _draw_bars(
    panel: Axes, label: str, tasks: Sequence[str], ours: Sequence[Summary], paper: Sequence[float], look: Look
) -> None:
    for j, one in enumerate(ours):
        bar = panel.bar(j, one.mean, width=0.8, color=look.colour, yerr=one.spread, ecolor=INK, zorder=2)
        set_tooltip(bar[0], f"{label}, {tasks[j]}: {one.mean:.2f}")
        top = one.mean + (one.spread or 0)
        # our number is above our bar, or above the paper's line where that would run through it
        top = paper[j] if j < len(paper) and top - 3 < paper[j] < top + 24 else top
        panel.text(j, top + 3, f"{one.mean:.0f}", ha="center", va="bottom", size=8, color=INK)
    for j, value in enumerate(paper):
        panel.plot([j - 0.48, j + 0.48], [value, value], color=INK, linewidth=1.6, zorder=3)
    panel.set_title(shorten_middle(label, 22), loc="left", size=9, color=look.colour, weight=look.weight)
    panel.set_ylim(0, 125)
    panel.set_yticks([0, 50, 100])
    panel.set_xticks(range(len(tasks)), [shorten_middle(name, 12) for name in tasks])
    panel.grid(visible=False, axis="x")
    panel.tick_params(axis="x", length=0)


def _add_legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    key: list[Line2D | Patch] = [Patch(color=QUIET), Line2D([], [], color=INK, linewidth=1.6)]
    figure.legend(key, ["ours", "paper"], loc="outside lower left", ncols=2, fontsize=8, handlelength=1.6)
