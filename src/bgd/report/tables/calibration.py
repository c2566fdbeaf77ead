"""What the probabilities of the final learner are worth."""

from __future__ import annotations

from collections.abc import Iterable

from bgd.report import formatting
from bgd.report.statistics import summarise
from bgd.report.summary.types import Comparison
from bgd.report.tables.types import Cell, Table


def calibration(comparison: Comparison) -> Table | None:
    """Log-loss and calibration error on all tests at the end; None where the declaration does not ask for them.

    >>> from bgd.report.summary import compare
    >>> calibration(compare([])) is None
    True
    """
    if comparison.experiment is None or not comparison.experiment.calibration:
        return None
    several, rows = len(comparison.columns) > 1, []
    for column in comparison.columns:
        for entry in comparison.column(column):
            last = [run.evaluations[-1] for run in entry.runs if run.evaluations]
            losses = [sum(one.loss) / len(one.loss) for one in last]
            errors = [100 * one.calibration_error for one in last if one.calibration_error is not None]
            if errors:
                cells = [entry.row, *[column] * several, mean(losses, 3), mean(errors, 2), str(len(errors))]
                rows.append(tuple(map(Cell, cells)))
    headers = ["method"] + ["setting"] * several + ["log-loss", "calibration error, %", "seeds"]
    return Table("Probabilities at the end", tuple(headers), tuple(rows)) if rows else None


def mean(values: Iterable[float], digits: int) -> str:
    """With its spread, where there are several.

    >>> mean([0.25], 1), mean([], 1)
    ('0.2', '–')
    """
    summary = summarise(values)
    if summary is None:
        return formatting.NONE
    spread = f" ± {summary.spread:.{digits}f}" if summary.spread is not None and summary.n > 1 else ""
    return f"{summary.mean:.{digits}f}{spread}"
