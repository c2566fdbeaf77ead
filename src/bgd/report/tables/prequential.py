"""What prequential streams measure beside the accuracy: log-loss, calibration, and the alarms."""

from __future__ import annotations

from bgd.report.summary.best import best_of
from bgd.report.summary.types import Comparison, Entry
from bgd.report.tables.calibration import mean
from bgd.report.tables.types import Cell, Table
from bgd.runs.result import Prequential

SHOWN = 6
"""Alarms of the first run that are listed."""


def prequential(comparison: Comparison) -> Table | None:
    """A line for each method and stream; None where nothing was predicted before it was learnt.

    >>> from bgd.report.summary import compare
    >>> prequential(compare([])) is None
    True
    """
    if not any(run.prequential for run in comparison.runs):
        return None
    several = len(comparison.columns) > 1
    rows = []
    for column in comparison.columns:
        entries = [entry for entry in comparison.column(column) if _measured(entry)]
        best = best_of(entries, lambda run: -run.prequential.log_loss if run.prequential else float("-inf"))
        for entry in entries:
            found = _measured(entry)
            rows.append(
                (
                    Cell(entry.row),
                    *[Cell(column)] * several,
                    Cell(mean((one.log_loss for one in found), 3), bold=entry in best),
                    Cell(mean((100 * one.calibration_error for one in found), 1)),
                    Cell(_describe_alarms(found)),
                )
            )
    headers = ["method"] + ["stream"] * several + ["log-loss", "calibration error, %", "alarms of change"]
    return Table(f"{comparison.title}: predictions", tuple(headers), tuple(rows))


def _measured(entry: Entry) -> list[Prequential]:
    return [run.prequential for run in entry.runs if run.prequential]


def _describe_alarms(found: list[Prequential]) -> str:
    """How many in each run, and at which examples in the first."""
    counts = ", ".join(str(len(one.alarms)) for one in found)
    first = [f"{alarm.at:,}" for alarm in found[0].alarms]
    if not first:
        return counts
    listed = "; ".join(first[:SHOWN]) + ("; …" if len(first) > SHOWN else "")
    return f"{counts} (at {listed})"
