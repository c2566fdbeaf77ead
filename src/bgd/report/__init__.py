"""From the results of runs to tables, figures and one page to look at.

>>> import tempfile
>>> [path.name for path in write([], tempfile.mkdtemp())]
['index.html', 'summary.csv', 'runs.csv', 'report.json']
"""

from bgd.report.figures.catalog import Plot, plots
from bgd.report.load import ReportError, load
from bgd.report.page import Section, page
from bgd.report.statistics import Difference, Summary, Verdict, difference, summarise, verdict
from bgd.report.summary import Comparison, Entry, Unfinished, compare
from bgd.report.tables import tables, to_markdown, to_rich, to_text
from bgd.report.write import FORMATS, USUAL, write, write_markdown

__all__ = [
    "FORMATS",
    "USUAL",
    "Comparison",
    "Difference",
    "Entry",
    "Plot",
    "ReportError",
    "Section",
    "Summary",
    "Unfinished",
    "Verdict",
    "compare",
    "difference",
    "load",
    "page",
    "plots",
    "summarise",
    "tables",
    "to_markdown",
    "to_rich",
    "to_text",
    "verdict",
    "write",
    "write_markdown",
]
