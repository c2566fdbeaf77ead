"""Curves with a band of one spread: the drawing behind every figure of a value against tasks, time or a setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bgd.report.figures.axes import WIDTH, figure_of, fix_layout, new_axes, set_title, set_tooltip
from bgd.report.figures.line_labels import LineEnd, label_line_ends
from bgd.report.figures.style import Look, assign_looks, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKED_POINTS = 24
"""Curves of more points than this are drawn without markers."""


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


def make_series(x: ArrayLike, runs: ArrayLike) -> Series:
    """Mean and spread over runs (R, N) measured at the same x (N,).

    >>> make_series([1, 2], [[90, 80], [92, 84]]).mean.tolist()
    [91.0, 82.0]
    """
    values = np.atleast_2d(np.asarray(runs, dtype=np.float64))
    with np.errstate(invalid="ignore"):  # an infinite loss has no spread
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
    return Series(np.asarray(x, dtype=np.float64), values.mean(axis=0), spread)


def draw_lines(
    curves: Mapping[str, Series],
    looks: Mapping[str, Look] | None = None,
    *,
    title: str,
    xlabel: str,
    ylabel: str = "accuracy, %",
    whole_x: bool = False,
    log_x: bool = False,
    top: float | None = None,
) -> Figure:
    """Curves with a band of one spread and each label beside the end of its line.

    Args:
        curves: by label, in order.
        looks: of every label; by default in the order of the curves.
        title: of the figure.
        xlabel: of the x axis.
        ylabel: of the y axis.
        whole_x: x counts something (tasks, epochs): ticks at whole numbers only.
        log_x: x spans orders of magnitude.
        top: where the y axis ends, if something exceeds it.

    >>> draw_lines({"BGD": make_series([1, 2], [[90, 80]])}, title="t", xlabel="tasks").get_suptitle()
    't'
    """
    looks = looks if looks is not None else assign_looks(list(curves))
    with style():
        ax = new_axes(WIDTH, 3.2)
        for label, curve in curves.items():
            _draw_curve(ax, label, curve, looks[label], ylabel)
        set_title(figure_of(ax), title)
        ax.set_xlabel(xlabel)
        ax.set_ylabel(ylabel)
        if log_x:
            _set_log_ticks(ax)
        else:
            _set_linear_ticks(ax, whole_x, longest=max((c.x.max(initial=0) for c in curves.values()), default=0))
        ax.grid(visible=False, axis="x")
        if top is not None and ax.get_ylim()[1] > top:
            ax.set_ylim(top=top)
        ends = [LineEnd(label, c.x[-1], c.mean[-1], looks[label]) for label, c in curves.items()]
        label_line_ends(ax, ends)
        return fix_layout(figure_of(ax))


def describe_ends(curves: Mapping[str, Series]) -> str:
    """The last value of each curve, for the figure's alternative text.

    >>> describe_ends({"BGD": make_series([1, 2], [[90, 80]])})
    'At the end: BGD 80.'
    """
    return "At the end: " + "; ".join(f"{label} {curve.mean[-1]:.4g}" for label, curve in curves.items()) + "."


def describe_bands(curves: Mapping[str, Series]) -> str:
    """A sentence on the bands for the caption; empty where there are none, as after a single seed each.

    >>> describe_bands({"BGD": make_series([1, 2], [[90, 80]])})
    ''
    """
    return " Bands are one standard deviation over seeds." if any(map(_has_band, curves.values())) else ""


def _has_band(curve: Series) -> bool:
    return bool((curve.spread > 0).any())


def _draw_curve(ax: Axes, label: str, curve: Series, look: Look, ylabel: str) -> None:
    if _has_band(curve):
        low, high = curve.mean - curve.spread, curve.mean + curve.spread
        if ylabel.endswith("%"):  # no accuracy lies outside, however wide the spread
            low, high = np.clip(low, 0, 100), np.clip(high, 0, 100)
        ax.fill_between(curve.x, low, high, color=look.colour, alpha=0.15, linewidth=0, zorder=2)
    (line,) = ax.plot(
        curve.x,
        curve.mean,
        look.dash,
        color=look.colour,
        marker=look.marker if len(curve.x) <= MARKED_POINTS else None,
        zorder=4 if look.emphasised else 3,
        label=label,
    )
    end = f"{curve.mean[-1]:.4g}" + (f" ± {curve.spread[-1]:.2g}" if curve.spread[-1] > 0 else "")
    set_tooltip(line, f"{label}: {ylabel.split(',')[0]} {end} at the end")


def _set_log_ticks(ax: Axes) -> None:
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_major_locator(LogLocator(numticks=4))
    ax.xaxis.set_minor_locator(NullLocator())


def _set_linear_ticks(ax: Axes, whole: bool, longest: float) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    # numbers of four and more digits need room
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5 if longest >= 1000 else 7, integer=whole))
    if whole:
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
