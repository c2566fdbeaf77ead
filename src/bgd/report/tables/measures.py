"""Forgetting, transfer, and the accuracy by each inference method."""

from __future__ import annotations

from collections.abc import Iterable

from bgd.inference import Inference
from bgd.report import formatting
from bgd.report.statistics import summarise
from bgd.report.summary.types import Comparison
from bgd.report.tables.types import Cell, Table

MEASURES = ("forgetting", "backward_transfer", "forward_transfer", "anytime_accuracy")
INFERENCE_METHODS: tuple[Inference, ...] = ("map", "mc", "vote", "mean_softmax")


def measures(comparison: Comparison) -> Table | None:
    """What else was measured, in percent; None if nothing was."""
    runs = comparison.runs
    several = len(comparison.columns) > 1
    names = [name for name in MEASURES if any(name in run.metrics for run in runs)]
    inferences = [inference for inference in INFERENCE_METHODS if any(inference in run.by_inference for run in runs)]
    if len(inferences) < 2:
        inferences = []  # a single one is that of the main table
    if not names and not inferences:
        return None
    rows = []
    for column in comparison.columns:
        for entry in comparison.column(column):
            cells = [entry.row] + [column] * several
            cells += [_average(run.metrics.get(name) for run in entry.runs) for name in names]
            cells += [_average(run.by_inference.get(inference) for run in entry.runs) for inference in inferences]
            rows.append(tuple(map(Cell, cells)))
    headers = ["method"] + ["setting"] * several + [name.replace("_", " ") for name in (*names, *inferences)]
    return Table(comparison.title, tuple(headers), tuple(rows))


def _average(values: Iterable[float | None]) -> str:
    return formatting.value(summarise(100 * value for value in values if value is not None))
