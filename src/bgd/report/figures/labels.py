"""Names of rows and columns in figures and file names, and the looks of the rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from bgd.report import formatting
from bgd.report.figures.style import Look, assign_looks
from bgd.report.summary.types import Comparison, Entry

LONGEST_LABEL = 28
"""Letters: a label that leaves room for the figure."""


def looks_of(comparison: Comparison) -> dict[str, Look]:
    """The look of each row by its label: the same in all figures of the comparison.

    >>> from bgd.report.summary import compare
    >>> looks_of(compare([]))
    {}
    """
    labels = {row: row_label(comparison, row) for row in comparison.rows}
    highlight = comparison.highlighted
    return assign_looks(
        list(labels.values()),
        highlight=None if highlight is None else labels[highlight],
        upper_bounds=[labels[row] for row in comparison.upper_bounds],
    )


def row_label(comparison: Comparison, row: str) -> str:
    """A row's name, shortened; rows that would have the same name are numbered."""
    return _distinct_name(comparison, row, shorten, " ({})")


def row_file_name(comparison: Comparison, row: str) -> str:
    """A row as part of a file name; rows that would have the same are numbered."""
    return _distinct_name(comparison, row, _to_file_name, "-{}")


def column_suffix(comparison: Comparison, column: str) -> str:
    """A column as the end of a title: empty where there is only one."""
    return f": {column}" if len(comparison.columns) > 1 else ""


def column_file_suffix(comparison: Comparison, column: str) -> str:
    """A column as the end of a file name; its number keeps names distinct that differ in other letters only."""
    if len(comparison.columns) == 1:
        return ""
    return f"-{comparison.columns.index(column) + 1}-{_to_file_name(column)}".rstrip("-")


def shorten(text: str) -> str:
    """A label on one line that leaves room for the figure.

    >>> shorten("Online EWC consolidated at every iteration")
    'Online EWC consolidated at …'
    """
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= LONGEST_LABEL else one_line[: LONGEST_LABEL - 1] + "…"


def describe_seeds(entries: Iterable[Entry]) -> str:
    """A sentence for the caption where rows were run on different seeds: their means are over different tasks.

    >>> describe_seeds([])
    ''
    """
    rows: dict[str, list[str]] = {}
    for entry in entries:
        if entry.runs:
            own = rows.setdefault(formatting.seeds([run.config.seed for run in entry.runs]), [])
            own += [entry.row] * (entry.row not in own)
    if len(rows) < 2:
        return ""
    return " Seeds differ: " + ", ".join(f"{numbers} ({'; '.join(own)})" for numbers, own in rows.items()) + "."


def describe_items(items: Iterable[tuple[str, str]]) -> str:
    """Names with their values as one sentence, for the alternative text.

    >>> describe_items([("BGD", "92 %"), ("SGD", "81 %")])
    'BGD 92 %; SGD 81 %.'
    """
    return "; ".join(f"{name} {text}" for name, text in items) + "."


def _distinct_name(comparison: Comparison, row: str, rename: Callable[[str], str], number: str) -> str:
    name = rename(row)
    same = [other for other in comparison.rows if rename(other) == name]
    return name + (number.format(same.index(row) + 1) if len(same) > 1 else "")


def _to_file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40]
