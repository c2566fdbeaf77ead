"""The task schedule of a stream: the share of each task in the batches over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bgd.report.figures.axes import WIDTH, figure_of, fix_layout, new_axes, set_title
from bgd.report.figures.labels import column_file_suffix, column_suffix
from bgd.report.figures.style import COLOURS, style
from bgd.report.figures.types import Plot
from bgd.report.summary.types import Comparison
from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.streams.base import Stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELLED_TASKS = 12
"""Up to so many tasks, their names fit above the lines."""


def plot_schedules(comparison: Comparison) -> Iterator[Plot]:
    """A figure for each column with a continuous stream, unless another column has the same."""
    drawn: set[tuple[int, int, float, int]] = set()
    for column in comparison.columns:
        runs = [run for entry in comparison.column(column) for run in entry.runs]
        continuous = [run for run in runs if run.config.setup.stream.kind == "continuous"]
        if not continuous:
            continue
        config, tasks = continuous[0].config, len(continuous[0].task_names)
        stream = config.setup.stream
        key = (tasks, stream.iterations, stream.beta, stream.batch_size)
        if key in drawn:
            continue
        drawn.add(key)
        title = "Which tasks the data comes from" + column_suffix(comparison, column)
        yield Plot(
            f"schedule{column_file_suffix(comparison, column)}",
            title,
            "The share of each task in the batches over time. Learners do not get it: boundaries are undefined.",
            f"{tasks} tasks over {stream.iterations:,} iterations; each fades in while the one before it fades out.",
            partial(
                draw_schedule_of, tasks, stream.iterations, stream.beta, stream.batch_size, config.seed, title=title
            ),
        )


def draw_schedule(stream: Stream, *, title: str = "Which tasks the data comes from") -> Figure:
    """The share of each task over time, from the stream itself, in the style of the report.

    >>> import torch
    >>> from bgd.scenarios import Continuous, DataSet, Part, permute, scenario
    >>> part = Part(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.arange(2))
    >>> tasks = permute(DataSet("two", part, part, ("a", "b")), 3, shared_head=True)
    >>> stream = Continuous(tasks, scenario("continuous task-agnostic"), iterations=300)
    >>> draw_schedule(stream).axes[0].get_xlabel()
    'iteration'
    """
    with style():
        # the palette instead of a gradient: neighbours differ, and each colour has its counterpart on a dark page
        colours = [COLOURS[t % len(COLOURS)] for t in range(len(stream.tasks))]
        ax = plot_schedule(stream, new_axes(WIDTH, 2.6), colours=colours)
        set_title(figure_of(ax), title)
        ax.grid(visible=False)
        return fix_layout(figure_of(ax))


def plot_schedule(
    stream: Stream, ax: Axes | None = None, *, points: int = 400, colours: Sequence[str] | None = None
) -> Axes:
    """Plot each task's share of the samples against the iteration: expected as lines, sampled as dots.

    Args:
        stream: any; its batches are sampled, not prepared, so that even a long one costs little.
        ax: to plot on; by default that of a new figure.
        points: iterations to evaluate, evenly spaced.
        colours: one for each task; by default a gradient.

    >>> import torch
    >>> from bgd.scenarios import Continuous, DataSet, Part, permute, scenario
    >>> part = Part(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.arange(2))
    >>> tasks = permute(DataSet("two", part, part, ("a", "b")), 3, shared_head=True)
    >>> stream = Continuous(tasks, scenario("continuous task-agnostic"), iterations=300)
    >>> len(plot_schedule(stream).lines)
    6
    """
    if points < 2:
        raise ScenarioError(f"points={points} is out of range: give 2 or more")
    from matplotlib import colormaps
    from matplotlib.colors import to_hex
    from matplotlib.ticker import StrMethodFormatter

    ax = new_axes(7, 3) if ax is None else ax
    last = len(stream) - 1
    iterations = np.unique(np.linspace(0, last, points).round().astype(np.intp))
    expected, sampled = stream.expected_proportions(iterations), stream.sampled_proportions(iterations)
    if colours is None:
        colours = [to_hex(c) for c in colormaps["viridis"](np.linspace(0, 0.92, len(stream.tasks)))]
    for t, colour in enumerate(colours):
        share = expected[:, t]
        # a line is at zero only next to where it rises, so that the last task's does not hide the others'
        near = np.convolve(share > 0, np.ones(3), mode="same") > 0
        ax.plot(iterations, np.where(near, share, np.nan), "-", color=colour, linewidth=1, zorder=2)
        present = sampled[:, t] > 0
        ax.plot(iterations[present], sampled[present, t], ".", color=colour, alpha=0.6, markersize=5, markeredgewidth=0)
        if len(colours) <= LABELLED_TASKS:
            strongest = iterations[share >= share.max() - 1e-9]
            middle = float(strongest.mean())
            side = "left" if middle == 0 else "right" if middle == last else "center"
            ax.annotate(f"task {t + 1}", (middle, 1.04), ha=side, va="bottom", color=colour, size=8)
    _add_legend(ax, stream.batch_size)
    ax.set(xlim=(0, max(last, 1)), ylim=(0, 1.15), ylabel="share of the batch")
    ax.set_xlabel("iteration", loc="left")
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.set_yticks([0, 0.5, 1])
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _add_legend(ax: Axes, batch_size: int) -> None:
    from matplotlib.lines import Line2D

    ax.legend(
        [Line2D([], [], color="0.4", linewidth=1), Line2D([], [], color="0.4", ls="", marker=".")],
        ["expected", f"sampled, batches of {batch_size}"],
        loc="upper right",
        bbox_to_anchor=(1.0, -0.08),
        ncols=2,
        frameon=False,
        fontsize=8,
    )


def draw_schedule_of(tasks: int, iterations: int, beta: float, batch_size: int, seed: int, *, title: str) -> Figure:
    """The schedule of a continuous stream: which task a sample comes from does not depend on the data.

    >>> draw_schedule_of(2, 200, 4.0, 8, 2019, title="t").get_suptitle()
    't'
    """
    import torch

    from bgd.scenarios import Continuous, DataSet, Part, permute, scenario

    part = Part(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.arange(2))
    empty = permute(DataSet("empty", part, part, ("a", "b")), tasks, shared_head=True)
    told = scenario("continuous task-agnostic")
    stream = Continuous(empty, told, iterations=iterations, beta=beta, batch_size=batch_size, seed=seed)
    return draw_schedule(stream, title=title)
