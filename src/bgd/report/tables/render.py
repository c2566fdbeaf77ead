"""Tables for the terminal (rich), as plain text, as Markdown and as HTML."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bgd.report.tables.types import Cell, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

TEXT_HEADERS = ("setting", "agreement", "of the paper", "scale")
"""Headers of columns that hold text, beside the first: aligned left."""


def to_rich(table: Table) -> RichTable:
    """For a terminal.

    >>> to_rich(Table("t", ("method",), ((Cell("BGD"),),))).row_count
    1
    """
    from rich.markup import escape
    from rich.table import Table as RichTable

    made = RichTable(title=escape(table.title), title_justify="left", header_style="bold", box=None, pad_edge=False)
    for i, header in enumerate(table.headers):
        made.add_column(escape(header), justify="right" if _is_numeric(i, header) else "left", overflow="fold")
    for row in table.rows:
        made.add_row(*(_to_markup(cell) for cell in row))
    return made


def to_text(table: Table) -> str:
    """Plain text, the same on every machine.

    >>> print(to_text(Table("t", ("method", "ours, %"), ((Cell("BGD"), Cell("46.20", bold=True)),))))
    t
    method  ours, %
    BGD       46.20
    """
    from rich.console import Console

    buffer = io.StringIO()
    # wide enough for any table: whoever reads the file decides where lines break
    Console(file=buffer, width=400, color_system=None, force_terminal=False).print(to_rich(table))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines() if line.strip())


def to_markdown(table: Table) -> str:
    r"""A Markdown table, the best in bold.

    >>> print(to_markdown(Table("t", ("method", "ours, %"), ((Cell("A|B"), Cell("46.20", bold=True)),))))
    | method | ours, % |
    |:--|--:|
    | A\|B | **46.20** |
    """
    rule = ["--:" if _is_numeric(i, header) else ":--" for i, header in enumerate(table.headers)]
    lines = [_join_cells([markdown_text(header) for header in table.headers]), "|" + "|".join(rule) + "|"]
    lines += [
        _join_cells([f"**{markdown_text(c.text)}**" if c.bold else markdown_text(c.text) for c in row])
        for row in table.rows
    ]
    return "\n".join(lines)


def markdown_text(text: str) -> str:
    r"""Text on one line, with everything escaped that Markdown or HTML would interpret.

    >>> markdown_text("a|b <i> *c*")
    'a\\|b &lt;i&gt; \\*c\\*'
    """
    one_line = " ".join(text.split())
    escaped = re.sub(r"([\\`*_\[\]|$~#])", r"\\\1", one_line)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _is_numeric(i: int, header: str) -> bool:
    return i > 0 and header not in TEXT_HEADERS


def _to_markup(cell: Cell) -> str:
    from rich.markup import escape

    style = " ".join(part for part in ("bold" if cell.bold else "", cell.tone) if part)
    return f"[{style}]{escape(cell.text)}[/]" if style else escape(cell.text)


def _join_cells(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
