"""Accuracy at the end: an overview of rows by columns, and the details of each beside the paper's."""

from __future__ import annotations

from bgd.report import formatting
from bgd.report.statistics import Verdict
from bgd.report.summary.scale import Scale
from bgd.report.summary.types import Comparison, Entry
from bgd.report.tables.types import Cell, Table

MARKS = {Verdict.AGREES: "✓", Verdict.HIGHER: "↑", Verdict.LOWER: "↓", Verdict.UNKNOWN: ""}
TONES = {Verdict.AGREES: "green", Verdict.HIGHER: "cyan", Verdict.LOWER: "yellow", Verdict.UNKNOWN: "dim"}


def overview(comparison: Comparison) -> Table:
    """Methods by settings: mean and spread, the best in bold, a mark where the paper's value is known."""
    rows = []
    for row in comparison.rows:
        cells = [Cell(row)]
        for column in comparison.columns:
            entry = comparison.entries.get((row, column))
            cells.append(Cell(formatting.NONE) if entry is None else _accuracy_cell(entry, with_mark=True))
        rows.append(tuple(cells))
    return Table(comparison.title, ("method", *comparison.columns), tuple(rows))


def detail(comparison: Comparison) -> Table:
    """A line for each method and setting: ours, the paper's, the difference, whether they agree, seeds, time."""
    several = len(comparison.columns) > 1
    headers = ["method"] + ["setting"] * several + ["ours, %"]
    headers += ["paper, %", "ours - paper", "agreement"] * comparison.has_paper + ["seeds", "time a run"]
    rows = []
    for column in comparison.columns:
        entries = comparison.column(column)
        same_seeds = len({tuple(run.config.seed for run in entry.runs) for entry in entries}) == 1
        for entry in entries:
            cells = [Cell(entry.row)] + [Cell(column)] * several + [_accuracy_cell(entry)]
            if comparison.has_paper:
                cells += [
                    Cell(formatting.value(entry.paper)),
                    Cell(formatting.change(entry.gap) if entry.gap else formatting.NONE),
                    Cell(describe_agreement(entry), tone=TONES[entry.verdict]),
                ]
            cells += [
                _seeds_cell(entry, same_seeds),
                Cell(formatting.NONE if entry.seconds is None else formatting.duration(entry.seconds)),
            ]
            rows.append(tuple(cells))
    return Table(comparison.title, tuple(headers), tuple(rows))


def describe_agreement(entry: Entry) -> str:
    """The verdict with its mark; the reason where there is none.

    >>> describe_agreement(Entry("BGD", "accuracy", runs=()))
    'not in the paper'
    """
    if entry.paper is None:
        return "smoke test: not compared" if entry.scale is Scale.SMOKE else "not in the paper"
    if entry.ours is None:
        return "no result"
    if not entry.comparable:
        return "not the paper's runs"
    return f"{MARKS[entry.verdict]} {entry.verdict}".strip()


def describe_missing_result(entry: Entry) -> str:
    """The state of an entry without a single result.

    >>> describe_missing_result(Entry("BGD", "accuracy", runs=()))
    'not finished'
    """
    return "failed" if entry.failed else "not finished"


def _accuracy_cell(entry: Entry, with_mark: bool = False) -> Cell:
    if entry.ours is None:
        return Cell(describe_missing_result(entry), tone="red")
    mark = MARKS[entry.verdict] if with_mark else ""
    return Cell(f"{formatting.value(entry.ours)} {mark}".strip(), bold=entry.best)


def _seeds_cell(entry: Entry, same_seeds: bool) -> Cell:
    """How many; which, where the rows of a column differ in them."""
    text = f"{len(entry.runs)} of {entry.planned}" if entry.unfinished else str(len(entry.runs))
    text += f" ({formatting.seeds([run.config.seed for run in entry.runs])})" if entry.runs and not same_seeds else ""
    text += f", {entry.failed} failed" if entry.failed else ""
    text += f", {entry.warned} with a warning" if entry.warned else ""
    return Cell(text, tone="red" if entry.unfinished else "yellow" if entry.warned else "")
