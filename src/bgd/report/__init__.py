"""From the results of runs to tables, figures and one page.

    load.py       folders of runs -> comparisons
    summary/      what a comparison is: means, spreads, the best, agreement with the paper
    tables/       one file per kind of table; render.py for the terminal, plain text, Markdown and HTML
    figures/      one file per kind of figure; catalog.py for which a comparison has, style.py for colours and markers
    findings.py   what these runs found, in a sentence; verdicts.py: what became of the paper's values
    page/         HTML pages, each self-contained: an index, and one for each experiment
    write.py      all of it as files: pages, tables, figures, CSV and JSON (export.py), Markdown, TensorBoard

>>> import tempfile
>>> [path.name for path in write([], tempfile.mkdtemp())]
['index.html', 'summary.csv', 'runs.csv', 'report.json']
"""

from bgd.report.figures.catalog import draw_plots
from bgd.report.figures.types import Plot
from bgd.report.files import ReportError
from bgd.report.load import load
from bgd.report.page.render import render_page, render_pages
from bgd.report.section import Section, make_sections
from bgd.report.statistics import Difference, Summary, Verdict, difference, summarise, verdict
from bgd.report.summary import Comparison, Entry, Unfinished, compare
from bgd.report.tables import all_tables, to_markdown, to_rich, to_text
from bgd.report.write import DEFAULT_FORMATS, FORMATS, write, write_markdown

__all__ = [
    "DEFAULT_FORMATS",
    "FORMATS",
    "Comparison",
    "Difference",
    "Entry",
    "Plot",
    "ReportError",
    "Section",
    "Summary",
    "Unfinished",
    "Verdict",
    "all_tables",
    "compare",
    "difference",
    "draw_plots",
    "load",
    "make_sections",
    "render_page",
    "render_pages",
    "summarise",
    "to_markdown",
    "to_rich",
    "to_text",
    "verdict",
    "write",
    "write_markdown",
]
