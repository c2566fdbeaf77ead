"""A table, independent of how it is rendered."""

from __future__ import annotations

import html
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
        return to_html(self)


def to_html(table: Table) -> str:
    r"""An HTML table for a notebook, the best in bold.

    >>> to_html(Table("T", ("method", "ours"), ((Cell("A & B"), Cell("1", bold=True)),)))[:48]
    '<table>\n<caption>T</caption>\n<tr><th>method</th>'
    """
    lines = [f"<caption>{html.escape(table.title)}</caption>"]
    lines.append(f"<tr>{''.join(f'<th>{html.escape(header)}</th>' for header in table.headers)}</tr>")
    for row in table.rows:
        texts = [f"<b>{html.escape(cell.text)}</b>" if cell.bold else html.escape(cell.text) for cell in row]
        lines.append(f"<tr>{''.join(f'<td>{text}</td>' for text in texts)}</tr>")
    return "\n".join(["<table>", *lines, "</table>"])
