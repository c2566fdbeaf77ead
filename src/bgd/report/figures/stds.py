"""Histograms of the posterior std of all weights after each task: which weights have become certain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bgd.report import formatting
from bgd.report.figures.axes import WIDTH, figure_of, fix_layout, new_axes, set_title, set_tooltip
from bgd.report.figures.labels import column_file_suffix, column_suffix, row_file_name, row_label, shorten
from bgd.report.figures.style import INK, QUIET, style
from bgd.report.figures.types import Plot
from bgd.report.summary.types import Comparison, Entry
from bgd.runs.result import RunResult, StdHistogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_stds(comparison: Comparison) -> Iterator[Plot]:
    """A figure for each row and column whose runs have a posterior; small where there are more than two in a column."""
    for column in comparison.columns:
        entries = comparison.column(column)
        small = sum(len(run.stds) > 1 for entry in entries for run in entry.runs[:1]) > 2
        for entry in entries:
            plot = _plot_row(comparison, entry, small)
            if plot is not None:
                yield plot


def _plot_row(comparison: Comparison, entry: Entry, small: bool) -> Plot | None:
    runs = [run for run in entry.runs if len(run.stds) > 1]
    if not runs:
        return None
    moments = [h.after for h in runs[0].stds]
    same = [run for run in runs if [h.after for h in run.stds] == moments]
    # Noisy K-FAC has no noise before its first inversion: a std of 0 cannot be shown on a logarithmic axis
    noisy = [any(run.stds[i].largest > 0 for run in same) for i in range(len(moments))]
    shown = [i for i, after in enumerate(moments) if after != "start" and noisy[i]]
    if not shown:
        return None
    # the name of the only task of a run is not informative
    names = [shorten(moments[i]) if len(runs[0].task_names) > 1 or i < len(moments) - 1 else "end" for i in shown]
    edges, counts = merge_histograms([[run.stds[i] for run in same] for i in shown])
    start = runs[0].stds[0]
    has_one_start = noisy[0] and math.isclose(start.smallest, start.largest, rel_tol=1e-3)
    title = f"Posterior std, {row_label(comparison, entry.row)}" + column_suffix(comparison, entry.column)
    return Plot(
        f"stds-{row_file_name(comparison, entry.row)}{column_file_suffix(comparison, entry.column)}",
        title,
        "Histograms of the std of all weights: weights that matter become certain and move left, "
        "the others keep their plasticity. Height: the root of their share"
        + (f", {formatting.count(len(same), 'seed')} together." if len(same) > 1 else ".")
        + (" What lies beyond the axis is at its ends." if _exceeds_histogram(same, shown) else ""),
        f"{len(shown)} histograms from {names[0]} to {names[-1]}; "
        f"smallest std {min(r.stds[-1].smallest for r in same):.2g} at the end.",
        draw_ridges(
            edges,
            counts,
            names,
            std_init=float(f"{start.largest:.4g}") if has_one_start else None,
            title=title,
        ),
        small=small,
    )


def merge_histograms(moments: Sequence[Sequence[StdHistogram]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Histograms of several runs at each moment, brought to common edges (B + 1,) and added up (M, B).

    Within a bin, weights are assumed to be spread evenly in the logarithm; where edges coincide the sum is exact.

    >>> one = StdHistogram(iteration=1, after="a", edges=[0.01, 0.1], counts=[4], smallest=0.02, largest=0.05)
    >>> two = StdHistogram(iteration=2, after="b", edges=[0.01, 0.1, 1], counts=[3, 1], smallest=0.02, largest=0.2)
    >>> merge_histograms([[one], [two]])[1].round(6).tolist()
    [[4.0, 0.0], [3.0, 1.0]]
    """
    edges = np.array(sorted({edge for moment in moments for h in moment for edge in h.edges}))
    log_edges = np.log(edges)
    counts = np.zeros((len(moments), len(edges) - 1))
    for row, moment in zip(counts, moments, strict=True):
        for h in moment:
            row += np.diff(np.interp(log_edges, np.log(h.edges), np.cumsum([0, *h.counts])))
    return edges, counts


def draw_ridges(
    edges: ArrayLike,
    counts: ArrayLike,
    labels: Sequence[str],
    *,
    std_init: float | None = None,
    title: str = "Posterior std after each task",
) -> Figure:
    """Histograms of the std of all weights, one ridge for each moment, on a logarithmic axis.

    Args:
        edges: of the bins (B + 1,), positive and growing.
        counts: of weights (M, B): how many have their std in each bin.
        labels: of the moments (M,), e.g. "task 1".
        std_init: where every weight began, drawn as a line.
        title: of the figure.

    >>> draw_ridges([1e-3, 1e-2, 1e-1], [[1, 9], [4, 6]], ["task 1", "task 2"]).axes[0].get_xscale()
    'log'
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    bins, weights = np.asarray(edges, dtype=np.float64), np.atleast_2d(np.asarray(counts, dtype=np.float64))
    share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1)
    # the share of weights per decade, so that bins of any width can be compared; its root, since one bin near
    # std_init holds most weights and would flatten everything else
    density = np.sqrt(share / np.diff(np.log10(bins)))
    height = 1.55 * density / max(density.max(), 1e-12)
    with style():
        ax = new_axes(WIDTH, 1.2 + 0.3 * max(len(weights), 3))
        colours = [to_hex(c) for c in colormaps["cividis"](np.linspace(0.25, 0.9, len(weights)))]
        for m, (ridge, colour) in enumerate(zip(height, colours, strict=True)):
            base = len(weights) - 1 - m
            y = np.repeat(ridge, 2) + base
            x = np.repeat(bins, 2)[1:-1]
            patch = ax.fill_between(x, base, y, color=colour, alpha=0.85, linewidth=0, zorder=2 + m)
            set_tooltip(patch, f"{labels[m]}: {_describe_certain(bins, share[m], std_init)}")
            ax.plot(x, y, color=INK, linewidth=0.8, zorder=2 + m)
        if std_init is not None:
            _mark_start(ax, std_init)
        # from where the first weights are found: the bins reach far below the smallest std of most runs
        used = np.flatnonzero(weights.sum(axis=0))
        _scale_x(ax, (bins[used[0]], bins[used[-1] + 1] * 1.05) if len(used) else None)
        ax.set_ylim(-0.1, len(weights) + 0.75)
        ax.set_yticks(range(len(weights)), list(labels)[::-1])
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False, axis="y")
        ax.spines["left"].set_visible(False)
        set_title(figure_of(ax), title)
        ax.set_xlabel("std of a weight")
        return fix_layout(figure_of(ax))


def _mark_start(ax: Axes, std_init: float) -> None:
    ax.axvline(std_init, color=QUIET, linewidth=1, linestyle="--", zorder=1)
    ax.annotate(
        f"initial std {std_init:g}",
        (std_init, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-3, 2),
        textcoords="offset points",
        ha="right",
        va="bottom",
        size=8,
        color=QUIET,
    )


def _scale_x(ax: Axes, limits: tuple[float, float] | None) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.set_xscale("log")
    if limits is not None:
        ax.set_xlim(*limits)
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high / low > 100 else (1.0, 2.0, 5.0)))
    # "0.001": easy to read, and no mathematical typesetting is needed
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _exceeds_histogram(runs: Sequence[RunResult], moments: Sequence[int]) -> bool:
    """Whether some std lies outside its histogram's edges: it is counted in the first or last bin."""
    shown = [run.stds[i] for run in runs for i in moments]
    return any(h.smallest < h.edges[0] or h.largest > h.edges[-1] for h in shown if h.counts)


def _describe_certain(bins: NDArray[np.float64], share: NDArray[np.float64], std_init: float | None) -> str:
    """How many weights have become certain."""
    if std_init is None:
        return f"{len(share)} bins"
    small = float(share[bins[1:] <= std_init / 2].sum())
    return f"{100 * small:.0f} % of the weights below half the initial std"
