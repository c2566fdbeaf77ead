"""Histograms of the posterior std of all weights after each task: which weights have become certain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bgd.report import formatting
from bgd.report.figures.axes import WIDTH, fix_layout, set_title, set_tooltip, shorten_middle
from bgd.report.figures.labels import column_file_suffix, column_suffix, describe_items, row_label, shorten
from bgd.report.figures.style import INK, QUIET, style
from bgd.report.figures.types import Plot
from bgd.report.summary.types import Comparison, Entry
from bgd.runs.result import RunResult, StdHistogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BINS = 48
"""Of a histogram in a panel: more cannot be told apart."""


@dataclass(frozen=True)
class Ridges:
    """The histograms of one row: a ridge for each moment.

    Attributes:
        label: of the row.
        edges: of the bins (B + 1,), positive and growing.
        counts: of weights (M, B): how many have their std in each bin.
        moments: their names (M,), e.g. "task 1".
        std_init: where every weight began, drawn as a line; None where there is no such value.
    """

    label: str
    edges: NDArray[np.float64]
    counts: NDArray[np.float64]
    moments: tuple[str, ...]
    std_init: float | None = None


def plot_stds(comparison: Comparison) -> Iterator[Plot]:
    """A figure for each column, with a panel for each row whose runs have a posterior."""
    for column in comparison.columns:
        entries = [e for e in comparison.column(column) if _shown_moments(_same_runs(e))]
        if not entries:
            continue
        title = "Posterior std of the weights" + column_suffix(comparison, column)
        runs = [run for e in entries for run in _same_runs(e)]
        together = max(len(_same_runs(e)) for e in entries)
        yield Plot(
            f"stds{column_file_suffix(comparison, column)}",
            title,
            "Histograms of the std of all weights: weights that matter become certain and move left, "
            "the others keep their plasticity. Dashed: the initial std. Height: the root of their share"
            + (f", {formatting.count(together, 'seed')} together." if together > 1 else ".")
            + (" What lies beyond the axis is at its ends." if any(map(_exceeds_histogram, runs)) else ""),
            "Smallest std at the end: "
            + describe_items((e.row, f"{min(r.stds[-1].smallest for r in _same_runs(e)):.2g}") for e in entries),
            partial(draw_ridges, [_ridges(row_label(comparison, e.row), e) for e in entries], title=title),
            secondary=len(entries) > 2,
        )


def _same_runs(entry: Entry) -> list[RunResult]:
    """The runs whose stds were measured at the moments of the first."""
    runs = [run for run in entry.runs if len(run.stds) > 1]
    return [run for run in runs if [h.after for h in run.stds] == [h.after for h in runs[0].stds]]


def _shown_moments(runs: Sequence[RunResult]) -> list[int]:
    """Which moments are drawn: those after the start at which weights have noise.

    Noisy K-FAC has none before its first inversion, and a std of 0 cannot be shown on a logarithmic axis.
    """
    moments = [h.after for h in runs[0].stds] if runs else []
    return [i for i, after in enumerate(moments) if after != "start" and any(r.stds[i].largest > 0 for r in runs)]


def _ridges(label: str, entry: Entry) -> Ridges:
    runs = _same_runs(entry)
    shown, first = _shown_moments(runs), runs[0]
    # the name of the only task of a run is not informative
    several = len(first.task_names) > 1
    names = [shorten(first.stds[i].after) if several or i < len(first.stds) - 1 else "end" for i in shown]
    edges, counts = coarsen(*merge_histograms([[run.stds[i] for run in runs] for i in shown]))
    start = first.stds[0]
    has_one_start = start.largest > 0 and math.isclose(start.smallest, start.largest, rel_tol=1e-3)
    return Ridges(label, edges, counts, tuple(names), float(f"{start.largest:.4g}") if has_one_start else None)


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


def coarsen(
    edges: NDArray[np.float64], counts: NDArray[np.float64], most: int = MOST_BINS
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same histograms over the bins that hold weights, in at most ``most`` bins.

    >>> edges, counts = coarsen(np.logspace(-4, 0, 101), np.ones((2, 100)), most=10)
    >>> len(edges), counts.sum(axis=1).round(6).tolist()
    (11, [100.0, 100.0])
    """
    used = np.flatnonzero(counts.sum(axis=0))
    if len(used):
        edges, counts = edges[used[0] : used[-1] + 2], counts[:, used[0] : used[-1] + 1]
    if len(edges) - 1 <= most:
        return edges, counts
    # old edges at even places in the order: narrow bins stay where there are many
    places = np.unique(np.linspace(0, len(edges) - 1, most + 1).round().astype(np.intp))
    return edges[places], np.add.reduceat(counts, places[:-1], axis=1)


def draw_ridges(panels: Sequence[Ridges], *, title: str = "Posterior std after each task") -> Figure:
    """Histograms of the std of all weights, one ridge for each moment, on a logarithmic axis; a panel for each row.

    >>> edges, counts = np.array([1e-3, 1e-2, 1e-1]), np.array([[1.0, 9.0], [4.0, 6.0]])
    >>> draw_ridges([Ridges("BGD", edges, counts, ("task 1", "task 2"))]).axes[0].get_xscale()
    'log'
    """
    from matplotlib.figure import Figure

    across = 2 if len(panels) > 1 else 1
    down = -(-len(panels) // across)
    ridges = max(len(panel.moments) for panel in panels)
    with style():
        height = 0.8 + (0.55 + (0.3 if across == 1 else 0.17) * max(ridges, 3)) * down
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False)
        for i, (ax, panel) in enumerate(zip(axes.flat, panels, strict=False)):
            beside = panels[i - i % across]  # its names serve the panel to its right too
            _draw_panel(ax, panel, named=i % across == 0 or panel.moments != beside.moments)
            if len(panels) == 1 and panel.std_init is not None:
                _name_start(ax, panel.std_init)
            if len(panels) > 1:
                ax.set_title(shorten_middle(panel.label, 24), loc="left", size=8)
        for ax in axes.flat[len(panels) :]:
            ax.set_axis_off()
        figure.supxlabel("std of a weight", size=9)
        set_title(figure, title)
        return fix_layout(figure)


def _draw_panel(ax: Axes, panel: Ridges, named: bool) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    bins, count = panel.edges, len(panel.moments)
    share = panel.counts / np.maximum(panel.counts.sum(axis=1, keepdims=True), 1)
    # the share of weights per decade, so that bins of any width can be compared; its root, since one bin near
    # std_init holds most weights and would flatten everything else
    density = np.sqrt(share / np.diff(np.log10(bins)))
    heights = 1.55 * density / max(density.max(), 1e-12)
    colours = [to_hex(c) for c in colormaps["cividis"](np.linspace(0.25, 0.9, count))]
    for m, (ridge, colour) in enumerate(zip(heights, colours, strict=True)):
        base = count - 1 - m
        patch = ax.stairs(ridge + base, bins, baseline=base, fill=True, facecolor=colour, edgecolor=INK)
        patch.set(alpha=0.85, linewidth=0.6, zorder=2 + m)
        set_tooltip(patch, f"{panel.moments[m]}: {_describe_certain(bins, share[m], panel.std_init)}")
    if panel.std_init is not None:
        ax.axvline(panel.std_init, color=QUIET, linewidth=1, linestyle="--", zorder=1)
    used = np.flatnonzero(panel.counts.sum(axis=0))
    _scale_x(ax, (bins[used[0]], bins[used[-1] + 1] * 1.05) if len(used) else None)
    ax.set_ylim(-0.1, count + 0.75)
    ax.set_yticks(range(count), list(panel.moments)[::-1] if named else [""] * count)
    ax.tick_params(axis="y", length=0, labelsize=8)
    ax.grid(visible=False, axis="y")
    ax.spines["left"].set_visible(False)


def _name_start(ax: Axes, std_init: float) -> None:
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
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    ax.set_xscale("log")
    if limits is not None:
        ax.set_xlim(*limits)
    ax.xaxis.set_major_locator(FixedLocator(log_ticks(*ax.get_xlim())))
    ax.xaxis.set_minor_locator(NullLocator())
    # "0.001": easy to read, and no mathematical typesetting is needed
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:.2g}"))


def log_ticks(low: float, high: float) -> list[float]:
    """Two to four ticks on a logarithmic axis: powers of ten if there are enough, else rounder numbers between them.

    >>> [f"{tick:g}" for tick in log_ticks(1e-6, 10)], [f"{tick:g}" for tick in log_ticks(0.012, 0.07)]
    (['1e-06', '0.0001', '0.01', '1'], ['0.02', '0.05'])
    >>> [f"{tick:.2g}" for tick in log_ticks(0.014, 0.017)]
    ['0.014', '0.017']
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 2, 5)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        inside = [tick for tick in ticks if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9)]
        if len(inside) > 1:
            return inside[:: -(-len(inside) // 4)]
    return [low, high]


def _exceeds_histogram(run: RunResult) -> bool:
    """Whether some std lies outside its histogram's edges: it is counted in the first or last bin."""
    drawn = [h for h in run.stds if h.after != "start" and h.counts]
    return any(h.smallest < h.edges[0] or h.largest > h.edges[-1] for h in drawn)


def _describe_certain(bins: NDArray[np.float64], share: NDArray[np.float64], std_init: float | None) -> str:
    """How many weights have become certain."""
    if std_init is None:
        return f"{len(share)} bins"
    small = float(share[bins[1:] <= std_init / 2].sum())
    return f"{100 * small:.0f} % of the weights below half the initial std"
