"""The paper's figures, drawn from plain arrays: each function returns a matplotlib figure and opens no window."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bgd.report.figures.style import COLOURS, GRID, INK, MISSING_GLYPH, QUIET, Look, looks, luminance, style
from bgd.report.statistics import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bgd.scenarios.streams.base import Stream

WIDTH = 4.5
"""Inches: narrow, so that the letters are still read on a phone."""

LEAST = 4.0
"""Percent that an axis of accuracies spans at least."""


@dataclass(frozen=True)
class Series:
    """One line: a value with its spread against x.

    Attributes:
        x: where it was measured.
        mean: over the runs.
        spread: standard deviation over the runs; zeros or NaN where unknown.
    """

    x: NDArray[np.float64]
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]


def series(x: ArrayLike, runs: ArrayLike) -> Series:
    """Mean and spread over runs (R, N) measured at the same x (N,).

    >>> series([1, 2], [[90, 80], [92, 84]]).mean.tolist()
    [91.0, 82.0]
    """
    values = np.atleast_2d(np.asarray(runs, dtype=np.float64))
    with np.errstate(invalid="ignore"):  # an infinite loss has no spread
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
    return Series(np.asarray(x, dtype=np.float64), values.mean(axis=0), spread)


def lines(
    curves: Mapping[str, Series],
    *,
    title: str,
    xlabel: str,
    ylabel: str = "accuracy, %",
    whole_x: bool = False,
    log_x: bool = False,
    top: float | None = None,
    among: Sequence[str] | None = None,
) -> Figure:
    """Curves with a band of one spread and each label beside the end of its line.

    Args:
        curves: by label, in order.
        title: of the figure.
        xlabel: of the x axis.
        ylabel: of the y axis.
        whole_x: x counts something (tasks, epochs): ticks at whole numbers only.
        log_x: x spans orders of magnitude.
        top: where the y axis ends, if something goes beyond it.
        among: all labels of a report, so that each has the same look in every figure.

    >>> lines({"BGD": series([1, 2], [[90, 80]])}, title="t", xlabel="tasks").get_suptitle()
    't'
    """
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

    with style():
        ax = _axes(WIDTH, 3.2)
        look = looks(list(dict.fromkeys([*(among or ()), *curves])))
        for label, curve in curves.items():
            kind = look[label]
            few = len(curve.x) <= 24
            front = 4 if label.lower() == "bgd" else 3
            if (curve.spread > 0).any():
                low, high = curve.mean - curve.spread, curve.mean + curve.spread
                if ylabel.endswith("%"):  # a wide spread reaches beyond what there is
                    low, high = np.clip(low, 0, 100), np.clip(high, 0, 100)
                ax.fill_between(curve.x, low, high, color=kind.colour, alpha=0.15, linewidth=0, zorder=2)
            (line,) = ax.plot(
                curve.x,
                curve.mean,
                kind.dash,
                color=kind.colour,
                marker=kind.marker if few else None,
                zorder=front,
                label=label,
            )
            line.set_gid(f"series:{_tooltip(label, curve, ylabel)}")
        _title(ax, title)
        ax.set_xlabel(xlabel)
        ax.set_ylabel(ylabel)
        if log_x:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            ax.xaxis.set_major_locator(LogLocator(numticks=4))
            ax.xaxis.set_minor_locator(NullLocator())
        else:
            long = any(curve.x.max(initial=0) >= 1000 for curve in curves.values())  # numbers, which need room
            ax.xaxis.set_major_locator(MaxNLocator(nbins=5 if long else 7, integer=whole_x))
            ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}") if whole_x else ax.xaxis.get_major_formatter())
        ax.grid(visible=False, axis="x")
        if top is not None and ax.get_ylim()[1] > top:
            ax.set_ylim(top=top)
        _label_ends(ax, {label: (c.x[-1], c.mean[-1], look[label]) for label, c in curves.items()})
        return _finished(ax)


def forest(
    rows: Sequence[tuple[str, Summary | None, Summary | None]],
    *,
    title: str,
    xlabel: str = "accuracy, %",
    among: Sequence[str] | None = None,
) -> Figure:
    """Our mean and spread as a dot with whiskers, the paper's as a band behind it: agreement at a glance.

    Also draws a search: pass None for the paper.

    Args:
        rows: (label, ours, paper's), from top to bottom; a row may lack either.
        title: of the figure.
        xlabel: of the x axis.
        among: all labels of a report, so that each has the same look in every figure.

    >>> figure = forest([("BGD", Summary(46.2, 2.0, 10), Summary(46.34, 2.36, 10))], title="t")
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['BGD']
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    with style():
        ax = _axes(WIDTH, 0.95 + 0.27 * max(len(rows), 2))
        ax.use_sticky_edges = False  # the lowest band does not begin at the axis
        look = looks(list(dict.fromkeys([*(among or ()), *(label for label, _, _ in rows)])))
        for y, (label, ours, paper) in enumerate(rows):
            if paper is not None:
                half = paper.spread or 0.0
                ax.barh(y, 2 * half, left=paper.mean - half, height=0.62, color=GRID, zorder=2)
                ax.plot([paper.mean] * 2, [y - 0.31, y + 0.31], color=QUIET, linewidth=1.6, zorder=3)
            if ours is not None and np.isfinite(ours.mean):
                kind = look[label]
                bar = ax.errorbar(
                    ours.mean,
                    y,
                    xerr=ours.spread or 0.0,
                    fmt=kind.marker,
                    color=kind.colour,
                    markersize=6,
                    elinewidth=1.6,
                    zorder=4,
                )
                spread = f" ± {ours.spread:.2f}" if ours.spread is not None else ""
                bar.lines[0].set_gid(f"series:{label}: {ours.mean:.2f}{spread}")
        ax.set_yticks(range(len(rows)), [label for label, _, _ in rows])
        ax.set_ylim(len(rows) - 0.4, -0.6)
        if xlabel.endswith("%"):  # a wide spread reaches beyond what there is
            left, right = ax.get_xlim()
            ax.set_xlim(max(left, -3), min(right, 103))
        _title(ax, title)
        ax.set_xlabel(xlabel)
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        if not any(paper is not None for _, _, paper in rows):
            return _finished(ax)
        key: list[Line2D | Patch] = [
            Line2D([], [], color=INK, marker="o", linestyle="-", linewidth=1.6),
            Patch(color=GRID),
        ]
        names = ["ours, mean ± spread", "paper, mean ± spread"]
        _figure(ax).legend(key, names, loc="outside lower left", ncols=2, fontsize=8, handlelength=1.6)
        return _finished(ax)


def task_bars(
    methods: Sequence[tuple[str, Sequence[Summary], Sequence[float]]],
    tasks: Sequence[str],
    *,
    title: str,
    among: Sequence[str] | None = None,
) -> Figure:
    """A small panel for each method with a bar for each task, and the paper's value as a line across the bar.

    Args:
        methods: (label, ours for each task, the paper's for each task or nothing), in order.
        tasks: their names.
        title: of the figure.
        among: all labels of a report, so that each has the same look in every figure.

    >>> figure = task_bars([("BGD", [Summary(90, 1, 3), Summary(70, 1, 3)], [])], ["a", "b"], title="t")
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['90', '70']
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    across = 2 if len(methods) > 1 else 1
    down = -(-len(methods) // across)
    named = max(map(len, tasks)) > 3
    with style():
        figure = Figure(figsize=(WIDTH, 0.75 + 1.25 * down + 0.5 * named), layout="constrained")
        panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
        look = looks(list(dict.fromkeys([*(among or ()), *(label for label, _, _ in methods)])))
        for panel, (label, ours, paper) in zip(panels.flat, methods, strict=False):
            for j, one in enumerate(ours):
                bar = panel.bar(j, one.mean, width=0.8, color=look[label].colour, yerr=one.spread, ecolor=INK, zorder=2)
                bar[0].set_gid(f"series:{label}, {tasks[j]}: {one.mean:.2f}")
                top = one.mean + (one.spread or 0)
                # our number stands on our bar, or on the paper's line where that would run through it
                top = paper[j] if j < len(paper) and top - 3 < paper[j] < top + 24 else top
                panel.text(j, top + 3, f"{one.mean:.0f}", ha="center", va="bottom", size=8, color=INK)
            for j, value in enumerate(paper):
                panel.plot([j - 0.48, j + 0.48], [value, value], color=INK, linewidth=1.6, zorder=3)
            panel.set_title(label, loc="left", size=9, color=look[label].colour)
            panel.set_ylim(0, 125)
            panel.set_yticks([0, 50, 100])
            panel.set_xticks(range(len(tasks)), [_cut(name, 12) for name in tasks])
            panel.grid(visible=False, axis="x")
            panel.tick_params(axis="x", length=0)
            if named:
                for text in panel.get_xticklabels():
                    text.set(rotation=40, ha="right", rotation_mode="anchor")
        for panel in panels.flat[len(methods) :]:
            panel.set_axis_off()
        figure.supylabel("accuracy, %", size=9)
        _title(panels[0, 0], title)
        if any(len(paper) for _, _, paper in methods):
            key: list[Line2D | Patch] = [Patch(color=QUIET), Line2D([], [], color=INK, linewidth=1.6)]
            figure.legend(key, ["ours", "paper"], loc="outside lower left", ncols=2, fontsize=8, handlelength=1.6)
        return _finished(panels[0, 0])


def std_ridges(
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

    >>> std_ridges([1e-3, 1e-2, 1e-1], [[1, 9], [4, 6]], ["task 1", "task 2"]).axes[0].get_xscale()
    'log'
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    bins, tall = np.asarray(edges, dtype=np.float64), np.atleast_2d(np.asarray(counts, dtype=np.float64))
    share = tall / np.maximum(tall.sum(axis=1, keepdims=True), 1)
    # the share of weights per decade, so that bins of any width can be compared; its root, since one bin near
    # std_init holds most weights and would flatten everything else
    density = np.sqrt(share / np.diff(np.log10(bins)))
    height = 1.55 * density / max(density.max(), 1e-12)
    with style():
        ax = _axes(WIDTH, 1.2 + 0.3 * max(len(tall), 3))
        colours = [to_hex(c) for c in colormaps["cividis"](np.linspace(0.25, 0.9, len(tall)))]
        for m, (ridge, colour) in enumerate(zip(height, colours, strict=True)):
            base = len(tall) - 1 - m
            y = np.repeat(ridge, 2) + base
            x = np.repeat(bins, 2)[1:-1]
            patch = ax.fill_between(x, base, y, color=colour, alpha=0.85, linewidth=0, zorder=2 + m)
            patch.set_gid(f"series:{labels[m]}: {_below(bins, share[m], std_init)}")
            ax.plot(x, y, color=INK, linewidth=0.8, zorder=2 + m)
        if std_init is not None:
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
        ax.set_xscale("log")
        # from where the first weights are found: the bins reach far below the smallest std of most runs
        used = np.flatnonzero(tall.sum(axis=0))
        if len(used):
            ax.set_xlim(bins[used[0]], bins[used[-1] + 1] * 1.05)
        low, high = ax.get_xlim()
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high / low > 100 else (1.0, 2.0, 5.0)))
        # "0.001": read by everybody, and no mathematical typesetting is needed
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_ylim(-0.1, len(tall) + 0.75)
        ax.set_yticks(range(len(tall)), list(labels)[::-1])
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False, axis="y")
        ax.spines["left"].set_visible(False)
        _title(ax, title)
        ax.set_xlabel("std of a weight")
        return _finished(ax)


def heat_map(
    R: ArrayLike,
    *,
    title: str,
    stages: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
) -> Figure:
    """The accuracy matrix in percent: a row for each stage, a column for each task; NaN stays empty.

    Args:
        R: accuracies in [0, 1].
        title: of the figure.
        stages: names of the rows; "1", "2", ... by default.
        tasks: names of the columns; likewise.

    >>> [text.get_text() for text in heat_map([[0.9, 0.1], [0.7, 0.8]], title="t").axes[0].texts]
    ['90', '10', '70', '80']
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    values = 100 * np.asarray(R, dtype=np.float64)
    rows, columns = values.shape
    cmap = colormaps["cividis"]
    with style():
        cell = min(0.42, 3.9 / columns)
        ax = _axes(max(WIDTH * 0.7, 1.1 + cell * columns), 1.1 + max(cell, 0.24) * rows)
        ax.pcolormesh(values, cmap=cmap, vmin=0, vmax=100, edgecolors="none")
        if columns <= 20:
            for (i, j), value in np.ndenumerate(values):
                if np.isfinite(value):
                    dark = luminance(to_hex(cmap(value / 100))) < 0.18
                    size = 8 if columns <= 10 else 6
                    # plain black and white: they stand on a cell's colour, which is the same in any theme
                    colour = "#ffffff" if dark else "#000000"
                    ax.text(j + 0.5, i + 0.5, f"{value:.0f}", ha="center", va="center", size=size, color=colour)
        ax.set_ylim(rows, 0)
        ax.set_xticks(np.arange(columns) + 0.5, tasks or [str(j + 1) for j in range(columns)])
        ax.set_yticks(np.arange(rows) + 0.5, stages or [str(i + 1) for i in range(rows)])
        if max(len(str(name)) for name in tasks or ["1"]) > 3:
            ax.tick_params(axis="x", rotation=40)
        ax.tick_params(length=0)
        ax.grid(visible=False)
        ax.spines[["left", "bottom"]].set_visible(False)
        _title(ax, title)
        ax.set_xlabel("tested on task")
        ax.set_ylabel("after stage")
        return _finished(ax)


def schedule(stream: Stream, *, title: str = "Which tasks the data comes from") -> Figure:
    """The share of each task over time, from the stream itself: what a task-agnostic learner is never told.

    >>> import torch
    >>> from bgd.scenarios import Continuous, DataSet, Part, permute, scenario
    >>> part = Part(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.arange(2))
    >>> tasks = permute(DataSet("two", part, part, ("a", "b")), 3, shared_head=True)
    >>> stream = Continuous(tasks, scenario("continuous task-agnostic"), iterations=300)
    >>> schedule(stream).axes[0].get_xlabel()
    'iteration'
    """
    from matplotlib.colors import to_hex

    from bgd.report.figures.schedule import plot_schedule

    with style():
        ax = plot_schedule(stream, _axes(WIDTH, 2.6))
        # the palette instead of a gradient: neighbours differ, and each colour has its sister on a dark screen
        found = list(dict.fromkeys(to_hex(line.get_color()) for line in ax.lines))
        for line in ax.lines:
            line.set_color(COLOURS[found.index(to_hex(line.get_color())) % len(COLOURS)])
        for text in ax.texts:
            text.set_color(COLOURS[found.index(to_hex(text.get_color())) % len(COLOURS)])
        _title(ax, title)
        ax.grid(visible=False)
        return _finished(ax)


def _cut(text: str, most: int) -> str:
    """In the middle: names that begin alike end in what tells them apart."""
    return text if len(text) <= most else f"{text[: most - 5]}…{text[-4:]}"


def _axes(width: float, height: float) -> Axes:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def _figure(ax: Axes) -> Figure:
    from matplotlib.figure import Figure

    assert isinstance(ax.figure, Figure)
    return ax.figure


def _title(ax: Axes, title: str) -> None:
    """At the left edge of the figure, where a long one has most room, and on two lines if need be."""
    figure = _figure(ax)
    most = round(figure.get_figwidth() * 11)
    figure.suptitle(textwrap.fill(title, most), x=0.01, ha="left", size=10, weight="bold")


def _finished(ax: Axes) -> Figure:
    """The figure with everything in its final place: saving it in several forms, or twice, gives the same picture."""
    figure = _figure(ax)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=MISSING_GLYPH)
        figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def _label_ends(ax: Axes, ends: Mapping[str, tuple[float, float, Look]]) -> None:
    """Write each label right of the end of its line, moved up or down just enough to keep them apart.

    Where two lines have one colour, a piece of each line stands before its label.
    """
    finite = {label: end for label, end in ends.items() if np.isfinite(end[1])}
    if not finite:
        return
    low, high = ax.get_ylim()
    if "accuracy" in ax.get_ylabel() and high - low < LEAST:  # or noise would look like a result
        low, high = (low + high - LEAST) / 2, (low + high + LEAST) / 2
    gap = 0.062 * (high - low)
    names = sorted(finite, key=lambda label: finite[label][1])
    at = _apart([finite[name][1] for name in names], gap, low, high)
    alike = len({look.colour for _, _, look in finite.values()}) < len(finite)
    for name, y in zip(names, at, strict=True):
        _, end, look = finite[name]
        right = max(x for x, _, _ in finite.values())
        height = (y - low) / (high - low)
        if alike:
            ax.plot(
                [1.02, 1.06, 1.10],
                [height] * 3,
                look.dash,
                color=look.colour,
                marker=look.marker,
                markevery=[1],
                markersize=4,
                linewidth=1.2,
                transform=ax.transAxes,
                clip_on=False,
            )
        ax.annotate(
            name,
            (right, end),
            xytext=(1.12 if alike else 1.03, height),
            textcoords="axes fraction",
            va="center",
            color=look.colour,
            size=8,
            weight="bold" if name.lower() == "bgd" else "normal",
            annotation_clip=False,
        )
    ax.set_ylim(low, high)


def _apart(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Growing values moved apart to at least ``gap``, as little as needed, and kept within [low, high] if they fit.

    Groups of values that touch are spread around their common middle (pool adjacent violators).

    >>> _apart([1.0, 1.0, 5.0], gap=1, low=0, high=10)
    [0.5, 1.5, 5.0]
    """
    groups: list[list[float]] = []
    for value in values:
        groups.append([value])
        while len(groups) > 1 and _span(groups[-1], gap, low, high)[0] < _span(groups[-2], gap, low, high)[-1] + gap:
            last = groups.pop()
            groups[-1] += last
    return [y for group in groups for y in _span(group, gap, low, high)]


def _span(group: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    half = gap * (len(group) - 1) / 2
    middle = max(min(float(np.mean(group)), high - half), low + half)
    return [middle - half + gap * i for i in range(len(group))]


def _tooltip(label: str, curve: Series, ylabel: str) -> str:
    end = f"{curve.mean[-1]:.4g}" + (f" ± {curve.spread[-1]:.2g}" if curve.spread[-1] > 0 else "")
    return f"{label}: {ylabel.split(',')[0]} {end} at the end"


def _below(bins: NDArray[np.float64], share: NDArray[np.float64], std_init: float | None) -> str:
    """In words: how many weights have become certain."""
    if std_init is None:
        return f"{len(share)} bins"
    small = float(share[bins[1:] <= std_init / 2].sum())
    return f"{100 * small:.0f} % of the weights below half the initial std"
