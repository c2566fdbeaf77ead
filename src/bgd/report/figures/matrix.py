"""The accuracy matrix R as a heat map: a row for each stage, a column for each task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bgd.report.figures.axes import WIDTH, figure_of, fix_layout, new_axes, set_title
from bgd.report.figures.labels import column_file_suffix, column_suffix, describe_items, row_file_name, row_label
from bgd.report.figures.style import luminance, style
from bgd.report.figures.types import Plot
from bgd.report.summary.types import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_matrices(comparison: Comparison) -> Iterator[Plot]:
    """A small figure for each row and column whose runs were evaluated after several stages."""
    for column in comparison.columns:
        for entry in comparison.column(column):
            runs = [run.R for run in entry.runs if len(run.R) > 1]
            if len({np.shape(R) for R in runs}) != 1:
                continue
            mean = np.mean(runs, axis=0)
            title = row_label(comparison, entry.row) + column_suffix(comparison, column)
            yield Plot(
                f"matrix-{row_file_name(comparison, entry.row)}{column_file_suffix(comparison, column)}",
                title,
                f"Accuracy of {entry.row} on each task after each stage, %",
                "After the last stage: "
                + describe_items((f"task {j + 1}", f"{100 * value:.0f} %") for j, value in enumerate(mean[-1])),
                draw_heat_map(mean, title=title),
                small=True,
            )


def draw_heat_map(R: ArrayLike, *, title: str) -> Figure:
    """The accuracy matrix in percent: a row for each stage, a column for each task; NaN stays empty.

    Args:
        R: accuracies in [0, 1].
        title: of the figure.

    >>> [text.get_text() for text in draw_heat_map([[0.9, 0.1], [0.7, 0.8]], title="t").axes[0].texts]
    ['90', '10', '70', '80']
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    values = 100 * np.asarray(R, dtype=np.float64)
    rows, columns = values.shape
    cmap = colormaps["cividis"]
    with style():
        cell = min(0.42, 3.9 / columns)
        ax = new_axes(max(WIDTH * 0.7, 1.1 + cell * columns), 1.1 + max(cell, 0.24) * rows)
        ax.pcolormesh(values, cmap=cmap, vmin=0, vmax=100, edgecolors="none")
        if columns <= 20:
            for (i, j), value in np.ndenumerate(values):
                if np.isfinite(value):
                    dark = luminance(to_hex(cmap(value / 100))) < 0.18
                    size = 8 if columns <= 10 else 6
                    # plain black and white: the colour of a cell below is the same in any theme
                    colour = "#ffffff" if dark else "#000000"
                    ax.text(j + 0.5, i + 0.5, f"{value:.0f}", ha="center", va="center", size=size, color=colour)
        ax.set_ylim(rows, 0)
        ax.set_xticks(np.arange(columns) + 0.5, [str(j + 1) for j in range(columns)])
        ax.set_yticks(np.arange(rows) + 0.5, [str(i + 1) for i in range(rows)])
        ax.tick_params(length=0)
        ax.grid(visible=False)
        ax.spines[["left", "bottom"]].set_visible(False)
        set_title(figure_of(ax), title)
        ax.set_xlabel("tested on task")
        ax.set_ylabel("after stage")
        return fix_layout(figure_of(ax))
