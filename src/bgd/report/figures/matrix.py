"""The accuracy matrices of all methods in one figure: a panel each, a row for each stage, a column for each task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bgd.report.figures.axes import WIDTH, fix_layout, set_title, shorten_middle, wrap_title
from bgd.report.figures.labels import column_file_suffix, column_suffix, describe_items, row_label
from bgd.report.figures.style import luminance, style
from bgd.report.figures.types import Plot
from bgd.report.summary.types import Comparison, Entry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUMBERED_TASKS = 5
"""Up to so many tasks, the cells have room for their numbers."""
ACROSS = 3
"""Panels beside each other, at most."""
TITLE, GAP = 0.24, 0.12
"""Inches for a line of the figure's title, and between panels."""


def plot_matrix(comparison: Comparison) -> Iterator[Plot]:
    """A figure for each column whose runs were evaluated after several stages, with a panel for each row."""
    for column in comparison.columns:
        matrices = {e.row: R for e in comparison.column(column) if (R := _mean_matrix(e)) is not None}
        if not matrices:
            continue
        title = "Accuracy after each stage, %" + column_suffix(comparison, column)
        yield Plot(
            f"matrix{column_file_suffix(comparison, column)}",
            title,
            "A row for each stage, a column for each task, as learnt: a task that stays bright is not forgotten.",
            "After the last stage: "
            + describe_items((row, ", ".join(f"{100 * end:.0f} %" for end in R[-1])) for row, R in matrices.items()),
            partial(draw_heat_maps, [(row_label(comparison, row), R) for row, R in matrices.items()], title=title),
            secondary=True,
        )


def _mean_matrix(entry: Entry) -> NDArray[np.float64] | None:
    """Over the runs; None where they have one stage only, or differ in size."""
    runs = [run.R for run in entry.runs if len(run.R) > 1]
    return np.mean(runs, axis=0) if len({np.shape(R) for R in runs}) == 1 else None


def draw_heat_maps(panels: Sequence[tuple[str, ArrayLike]], *, title: str) -> Figure:
    """Accuracy matrices in percent, one panel each: a row for each stage, a column for each task; NaN stays empty.

    Args:
        panels: (label, accuracies in [0, 1]), in order.
        title: of the figure.

    >>> figure = draw_heat_maps([("BGD", [[0.9, 0.1], [0.7, 0.8]])], title="t")
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['BGD', '90', '10', '70', '80']
    """
    from matplotlib.figure import Figure

    across = min(ACROSS, len(panels))
    pitch = WIDTH / across if across > 1 else 0.55 * WIDTH
    side, head = pitch - GAP, 0.22
    down = -(-len(panels) // across)
    width = max(pitch * across + GAP, 0.8 * WIDTH)
    above = TITLE * len(wrap_title(title, width))
    height = above + (side + head) * down + GAP
    with style():
        figure = Figure(figsize=(width, height))
        # one pair of axes in inches from the top left: a pair for each panel takes ten times as long to draw
        ax = figure.add_axes((0, 0, 1, 1))
        for i, (label, R) in enumerate(panels):
            left, top = GAP + pitch * (i % across), above + (side + head) * (i // across) + head
            ax.text(left, top - 0.05, shorten_middle(label, round(side * 14)), size=8, va="bottom")
            _draw_heat_map(ax, left, top, side, 100 * np.asarray(R, dtype=np.float64))
        ax.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
        ax.set_axis_off()
        set_title(figure, title)
        return fix_layout(figure)


def _draw_heat_map(ax: Axes, left: float, top: float, side: float, values: NDArray[np.float64]) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    rows, columns = values.shape
    cmap = colormaps["cividis"]
    extent = (left, left + side, top + side, top)
    ax.imshow(values, cmap=cmap, vmin=0, vmax=100, extent=extent, interpolation="none")
    if columns > NUMBERED_TASKS:
        return
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            # plain black and white: the colour of a cell below is the same in any theme
            colour = "#ffffff" if luminance(to_hex(cmap(value / 100))) < 0.18 else "#000000"
            x, y = left + side * (j + 0.5) / columns, top + side * (i + 0.5) / rows
            ax.text(x, y, f"{value:.0f}", ha="center", va="center", size=8, color=colour)
