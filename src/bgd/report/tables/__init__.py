"""Tables of a comparison: one file for each kind, ``render.py`` for the terminal, plain text, Markdown and HTML."""

from bgd.report.tables.catalog import all_tables, extra_tables
from bgd.report.tables.render import to_markdown, to_rich, to_text
from bgd.report.tables.results import detail, overview
from bgd.report.tables.types import Cell, Table, to_html

__all__ = [
    "Cell",
    "Table",
    "all_tables",
    "detail",
    "extra_tables",
    "overview",
    "to_html",
    "to_markdown",
    "to_rich",
    "to_text",
]
