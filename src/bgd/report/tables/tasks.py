"""Accuracy on each task at the end."""

from __future__ import annotations

from functools import partial

from bgd.report import formatting
from bgd.report.statistics import Summary
from bgd.report.summary.best import best_of
from bgd.report.summary.types import Comparison, final_accuracies
from bgd.report.tables.types import Cell, Table
from bgd.runs.result import RunResult


def each_task(comparison: Comparison, column: str) -> Table | None:
    """Accuracy on each task at the end, ours / the paper's; None where a column has fewer than two tasks."""
    entries = [entry for entry in comparison.column(column) if len(entry.tasks) > 1]
    names = list(dict.fromkeys(name for entry in entries for name in entry.tasks))
    if not names:
        return None
    best = {
        name: best_of((entry for entry in entries if name in entry.tasks), partial(_accuracy_on, name))
        for name in names
    }
    paper = any(e.reported and e.reported.tasks for e in entries)
    rows = []
    for entry in entries:
        reported = dict(zip(entry.tasks, entry.reported.tasks if entry.reported else (), strict=False))
        cells = [Cell(entry.row), Cell(_ours_and_paper(entry.ours, entry.paper.mean if entry.paper else None, paper))]
        cells += [
            Cell(_ours_and_paper(entry.tasks.get(name), reported.get(name), paper), bold=entry in best[name])
            for name in names
        ]
        rows.append(tuple(cells))
    title = "Accuracy on each task at the end, %" + ": ours / paper" * paper
    title += f": {column}" if len(comparison.columns) > 1 else ""
    return Table(title, ("method", "average", *names), tuple(rows))


def _accuracy_on(task: str, run: RunResult) -> float:
    return final_accuracies(run)[task]


def _ours_and_paper(ours: Summary | None, paper: float | None, both: bool) -> str:
    return formatting.value(ours) + (f" / {formatting.NONE if paper is None else f'{paper:.2f}'}" if both else "")
