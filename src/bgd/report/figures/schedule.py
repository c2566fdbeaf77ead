"""The paper's figure of the schedule: the share of each task in the batches over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.streams.base import Stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_schedule(stream: Stream, ax: Axes | None = None, *, points: int = 400) -> Axes:
    """Draw each task's share of the samples against the iteration: expected as lines, drawn as dots.

    Args:
        stream: any; its batches are drawn, not prepared, so that even a long one costs little.
        ax: to draw on; by default that of a new figure.
        points: iterations to look at, evenly spaced.

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
    # here and not above: streams are used in every run, figures seldom, and matplotlib loads slowly
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import StrMethodFormatter

    if ax is None:  # a figure of its own, not pyplot's: nothing to close, and no display is ever opened
        ax = Figure(figsize=(7, 3), layout="constrained").add_subplot()

    last = len(stream) - 1
    at = np.unique(np.linspace(0, last, points).round().astype(np.intp))
    expected, drawn = stream.expected_proportions(at), stream.sampled_proportions(at)
    colours = colormaps["viridis"](np.linspace(0, 0.92, len(stream.tasks)))
    for t, colour in enumerate(colours):
        share = expected[:, t]
        # a line rests on the axis only next to where it rises, so that the last task's does not hide the others'
        near = np.convolve(share > 0, np.ones(3), mode="same") > 0
        ax.plot(at, np.where(near, share, np.nan), "-", color=colour, linewidth=1, zorder=2)
        present = drawn[:, t] > 0
        ax.plot(at[present], drawn[present, t], ".", color=colour, alpha=0.6, markersize=5, markeredgewidth=0)
        if len(colours) <= 12:  # as long as the names fit, each where its task is strongest
            best = at[share >= share.max() - 1e-9]
            middle = float(best.mean())
            side = "left" if middle == 0 else "right" if middle == last else "center"
            ax.annotate(f"task {t + 1}", (middle, 1.04), ha=side, va="bottom", color=colour, size=8)
    expected_key, drawn_key = Line2D([], [], color="0.4", linewidth=1), Line2D([], [], color="0.4", ls="", marker=".")
    ax.legend(
        [expected_key, drawn_key],
        ["expected", f"drawn, batches of {stream.batch_size}"],
        loc="upper right",
        bbox_to_anchor=(1.0, -0.08),
        ncols=2,
        frameon=False,
        fontsize=8,
    )
    ax.set(xlim=(0, max(last, 1)), ylim=(0, 1.15), ylabel="share of the batch")
    ax.set_xlabel("iteration", loc="left")
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.set_yticks([0, 0.5, 1])
    ax.spines[["top", "right"]].set_visible(False)
    return ax
