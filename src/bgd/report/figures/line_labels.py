"""Labels beside the ends of lines, moved just enough not to overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bgd.report.figures.style import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALLEST_RANGE = 4.0
"""Percent that an axis of accuracies spans at least, or noise would look like a result."""

LABEL_HEIGHT = 0.062
"""Of a label, as a part of the axis."""


@dataclass(frozen=True)
class LineEnd:
    """The last point of a line.

    Attributes:
        label: of the line.
        x: of its last point.
        y: likewise.
        look: of the line.
    """

    label: str
    x: float
    y: float
    look: Look


def label_line_ends(ax: Axes, ends: Sequence[LineEnd]) -> None:
    """Write each label right of the end of its line, moved up or down just enough to keep them apart.

    Where two lines share a colour, a sample of each line is drawn before its label. A line that does not end in a
    finite value has no label.

    >>> from bgd.report.figures.axes import new_axes
    >>> ax = new_axes(4, 3)
    >>> label_line_ends(ax, [LineEnd("BGD", 1.0, 0.5, Look("#c04a00", "-", "o"))])
    >>> [text.get_text() for text in ax.texts]
    ['BGD']
    """
    finite = sorted((end for end in ends if math.isfinite(end.y)), key=lambda end: end.y)
    if not finite:
        return
    low, high = ax.get_ylim()
    if "accuracy" in ax.get_ylabel() and high - low < SMALLEST_RANGE:
        low, high = (low + high - SMALLEST_RANGE) / 2, (low + high + SMALLEST_RANGE) / 2
    heights = spread_labels([end.y for end in finite], LABEL_HEIGHT * (high - low), low, high)
    with_samples = len({end.look.colour for end in finite}) < len(finite)
    right = max(end.x for end in finite)
    for end, y in zip(finite, heights, strict=True):
        height = (y - low) / (high - low)
        if with_samples:
            _draw_sample(ax, end.look, height)
        ax.annotate(
            end.label,
            (right, end.y),
            xytext=(1.12 if with_samples else 1.03, height),
            textcoords="axes fraction",
            va="center",
            color=end.look.colour,
            size=8,
            weight=end.look.weight,
            annotation_clip=False,
        )
    ax.set_ylim(low, high)


def spread_labels(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Growing values moved apart to at least ``gap``, as little as needed, and kept within [low, high] if they fit.

    Groups of values that touch are spread around their common middle (pool adjacent violators).

    >>> spread_labels([1.0, 1.0, 5.0], gap=1, low=0, high=10)
    [0.5, 1.5, 5.0]
    """
    groups: list[list[float]] = []
    for value in values:
        groups.append([value])
        while (
            len(groups) > 1
            and _spread_group(groups[-1], gap, low, high)[0] < _spread_group(groups[-2], gap, low, high)[-1] + gap
        ):
            last = groups.pop()
            groups[-1] += last
    return [y for group in groups for y in _spread_group(group, gap, low, high)]


def _spread_group(group: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    half = gap * (len(group) - 1) / 2
    middle = max(min(sum(group) / len(group), high - half), low + half)
    return [middle - half + gap * i for i in range(len(group))]


def _draw_sample(ax: Axes, look: Look, height: float) -> None:
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
