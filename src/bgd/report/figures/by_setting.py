"""Accuracy at the end against a number that the columns are named after, such as a count of tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np

from bgd.report.figures.labels import describe_seeds, looks_of, row_label
from bgd.report.figures.lines import Series, describe_bands, describe_ends, draw_lines
from bgd.report.figures.types import Plot
from bgd.report.summary.types import Comparison
from bgd.runs.config import RunConfig


def plot_by_setting(comparison: Comparison) -> Iterator[Plot]:
    """One figure where all columns are the same text around a number, and two rows or more can be compared."""
    numbers = [re.fullmatch(r"(\D*)(\d+(?:\.\d+)?)(\D*)", column) for column in comparison.columns]
    if len(numbers) < 2 or not all(numbers) or len({(m[1], m[3]) for m in numbers if m}) > 1:
        return
    x = [float(m[2]) for m in numbers if m]
    curves = _curves(comparison, x)
    if len(curves) < 2:
        return
    setting = re.sub(r"[\d.]+", "", comparison.columns[0]).strip(" =") or "setting"
    title = "Average accuracy over all tasks"
    yield Plot(
        "by-setting",
        title,
        f"Average accuracy over all tasks at the end against {setting}."
        + describe_bands(curves)
        + describe_seeds(e for e in comparison.entries.values() if row_label(comparison, e.row) in curves),
        describe_ends(curves),
        partial(
            draw_lines,
            curves,
            looks_of(comparison),
            title=title,
            xlabel=setting,
            whole_x=all(number.is_integer() for number in x),
            log_x=max(x) >= 100 * min(x) > 0,
        ),
    )


def _curves(comparison: Comparison, x: list[float]) -> dict[str, Series]:
    curves: dict[str, Series] = {}
    for row in comparison.rows:
        entries = [comparison.entries.get((row, column)) for column in comparison.columns]
        ordered = sorted(zip(x, entries, strict=True), key=lambda pair: pair[0])
        known = [
            (number, e.ours)
            for number, e in ordered
            if e and e.ours and all(_has_setting(run.config, number) for run in e.runs)
        ]
        if len(known) > 1:
            curves[row_label(comparison, row)] = Series(
                np.array([number for number, _ in known], dtype=np.float64),
                np.array([ours.mean for _, ours in known]),
                np.array([ours.spread or 0.0 for _, ours in known]),
            )
    return curves


def _has_setting(config: RunConfig, number: float) -> bool:
    """Whether some setting of the run is the number in its column's name: in a shortened run it may be no setting."""
    return number in map(float, re.findall(r"\d+(?:\.\d+)?(?:e[-+]\d+)?", f"{config.settings} {config.setup}"))
