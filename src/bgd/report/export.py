"""The numbers of a report for programs: CSV and JSON, the same bytes for the same results."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from bgd.report.summary.rows import column_of, row_of
from bgd.report.summary.types import Comparison, Entry
from bgd.runs.result import RunResult


def summary_records(comparisons: Iterable[Comparison]) -> list[dict[str, Any]]:
    """One record for each row in each column; accuracies in percent."""
    return [_origin(c) | _entry_record(entry) for c in comparisons for entry in c.entries.values()]


def run_records(comparisons: Iterable[Comparison]) -> list[dict[str, Any]]:
    """One record for each finished run; accuracies in percent, other metrics as measured."""
    return [_origin(c) | _run_record(run) for c in comparisons for run in c.runs]


def to_csv(records: Sequence[dict[str, Any]]) -> str:
    r"""A table with a header; a column for every key that any record has.

    >>> to_csv([{"a": 1}, {"a": 2, "b": "x,y"}])
    'a,b\n1,\n2,"x,y"\n'
    """
    keys = dict.fromkeys(key for record in records for key in record)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(keys), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return buffer.getvalue()


def to_json(comparisons: Sequence[Comparison], indent: int | None = 1) -> str:
    """Everything that the tables show, and each run's own values; without ``indent`` on one line."""
    content = {"summary": summary_records(comparisons), "runs": run_records(comparisons)}
    return json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"


def _origin(comparison: Comparison) -> dict[str, Any]:
    return {
        "experiment": comparison.name,
        "preset": comparison.preset,
        "overrides": " ".join(comparison.overrides),  # the user's own values, key=value
    }


def _entry_record(entry: Entry) -> dict[str, Any]:
    ours, paper, gap = entry.ours, entry.paper, entry.gap
    return {
        "row": entry.row,
        "column": entry.column,
        "mean": _rounded(ours.mean) if ours else None,
        "spread": _rounded(ours.spread) if ours else None,
        "runs": len(entry.runs),
        "planned": entry.planned,
        "paper_mean": paper.mean if paper else None,
        "paper_spread": paper.spread if paper else None,
        "difference": _rounded(gap.value) if gap else None,
        "standard_error": _rounded(gap.standard_error) if gap else None,
        "at_paper_scale": entry.comparable,
        "verdict": str(entry.verdict),
        "seconds_a_run": _rounded(entry.seconds),
        "seconds_an_epoch": _rounded(entry.epoch_seconds),
    }


def _run_record(run: RunResult) -> dict[str, Any]:
    return (
        {
            "row": row_of(run.config),
            "column": column_of(run.config),
            "method": run.config.method,
            "seed": run.config.seed,
            "accuracy": _rounded(100 * run.average_accuracy),
        }
        | {f"accuracy_{inference}": _rounded(100 * value) for inference, value in sorted(run.by_inference.items())}
        | {name: _rounded(value) for name, value in sorted(run.metrics.items())}
        | {
            "iterations": run.iterations,
            "seconds": _rounded(run.machine.seconds) if run.machine else None,
            "warnings": " ".join(run.warnings),
        }
    )


def _rounded(value: float | None) -> float | None:
    """Rounded far below the precision of any of these numbers; JSON has no number for what is not finite."""
    return round(value, 6) if value is not None and math.isfinite(value) else None
