"""Names of rows and columns in figures and file names, and the looks of the rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

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
    label = shorten(row)
    same = [other for other in comparison.rows if shorten(other) == label]
    return label + (f" ({same.index(row) + 1})" if len(same) > 1 else "")


def column_suffix(comparison: Comparison, column: str) -> str:
    """A column as the end of a title: empty where there is only one."""
    return f": {column}" if len(comparison.columns) > 1 else ""


def column_file_suffix(comparison: Comparison, column: str) -> str:
    """A column as the end of a file name: empty where there is only one."""
    return f"-{file_name(column, comparison.columns)}" if len(comparison.columns) > 1 else ""


def file_name(name: str, others: Sequence[str] = ()) -> str:
    """A name as part of a file name, without ordinals, so that it stays when others come or go.

    Names that differ only in what a file name leaves out get a few letters of their digest.

    >>> file_name("+ labels trick"), file_name("λ", ["λ", "μ"])
    ('labels-trick', '6bb5')
    """
    renamed = _to_file_name(name)
    if renamed and not any(_to_file_name(other) == renamed for other in others if other != name):
        return renamed
    return f"{renamed}-{hashlib.sha256(name.encode()).hexdigest()[:4]}".lstrip("-")


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


def has_spread(entries: Iterable[Entry]) -> bool:
    """Whether any of them was measured on several seeds.

    >>> has_spread([])
    False
    """
    return any(entry.ours is not None and entry.ours.spread is not None for entry in entries)


def describe_items(items: Iterable[tuple[str, str]]) -> str:
    """Names with their values as one sentence, for the alternative text.

    >>> describe_items([("BGD", "92 %"), ("SGD", "81 %")])
    'BGD 92 %; SGD 81 %.'
    """
    return "; ".join(f"{name} {text}" for name, text in items) + "."


def _to_file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
