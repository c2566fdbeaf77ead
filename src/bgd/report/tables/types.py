"""A table, independent of how it is rendered."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """Text of a table, and its meaning.

    Attributes:
        text: plain.
        bold: the best of its column.
        tone: a colour of rich, where there are colours.
    """

    text: str
    bold: bool = False
    tone: str = ""


@dataclass(frozen=True)
class Table:
    """A title, headers and rows; the first column holds names, the others values."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def _repr_html_(self) -> str:
        """For notebooks."""
        from bgd.report.tables.render import to_html

        return to_html(self)
