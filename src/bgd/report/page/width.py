"""How wide a table must be for nothing in it to be cut off: in less room its rows become blocks."""

from __future__ import annotations

from collections.abc import Sequence

STEPS = tuple(range(20, 121, 5))
"""Widths in rem at which the style sheet can turn a table's rows into blocks."""

LETTER, PADDING, SHORTEST = 0.56, 1.7, 4.0
"""Rem: of a letter, wide ones included; between columns; of a column."""


def needed_width(rows: Sequence[Sequence[str]]) -> int:
    """The smallest of :data:`STEPS` in which every column has room for its longest unbreakable text.

    Names break at spaces; a number stays on one line with its spread.

    >>> needed_width([["method", "ours, %"], ["Online EWC", "58.29 ± 2.19"]])
    20
    >>> needed_width([["method"] + [f"task {i}" for i in range(10)]] + [["SGD"] + ["58.29 ± 2.19"] * 10])
    95
    """
    heads = [f"{name}_↕" for name in rows[0]]  # the mark of a column that can be sorted
    columns = list(zip(heads, *rows[1:], strict=True))
    total = sum(max(SHORTEST, LETTER * max(map(_longest_part, column)) + PADDING) for column in columns)
    return next((step for step in STEPS if step >= total), STEPS[-1])


def _longest_part(text: str) -> int:
    """Letters: of the longest word, a number with its spread and sign counting as one."""
    return max(map(len, text.replace(" ± ", "_±_").replace(" / ", "_/_").split()), default=0)
