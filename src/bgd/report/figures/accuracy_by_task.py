"""Average accuracy on the tasks seen so far, against their number: how much is forgotten as tasks are added."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bgd.report.figures.labels import column_file_suffix, column_suffix, describe_seeds, looks_of, row_label
from bgd.report.figures.lines import Series, describe_bands, describe_ends, draw_lines, make_series
from bgd.report.figures.types import Plot
from bgd.report.summary.types import Comparison
from bgd.runs.metrics import average_accuracy_seen


def plot_accuracy_by_task(comparison: Comparison) -> Iterator[Plot]:
    """A figure for each column whose runs were evaluated after every one of several tasks."""
    for column in comparison.columns:
        curves = _curves(comparison, column)
        if curves:
            title = "Average accuracy on the tasks so far" + column_suffix(comparison, column)
            yield Plot(
                f"accuracy-by-task{column_file_suffix(comparison, column)}",
                title,
                "Test accuracy averaged over the tasks seen so far, against their number."
                + describe_bands(curves)
                + describe_seeds(e for e in comparison.column(column) if row_label(comparison, e.row) in curves),
                describe_ends(curves),
                partial(draw_lines, curves, looks_of(comparison), title=title, xlabel="number of tasks", whole_x=True),
            )


def _curves(comparison: Comparison, column: str) -> dict[str, Series]:
    curves = {}
    for entry in comparison.column(column):
        runs = [run for run in entry.runs if len(run.R) == len(run.task_names) > 1]
        if len({len(run.R) for run in runs}) == 1:
            seen = [100 * average_accuracy_seen(run.R) for run in runs]
            curves[row_label(comparison, entry.row)] = make_series(np.arange(1, len(seen[0]) + 1), seen)
    return curves
