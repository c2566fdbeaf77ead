"""The results that the repository publishes are what its runs say: nobody has edited them, and nothing is left over."""

import re
from pathlib import Path

import pytest

from bgd.report.figures.agreement import plot_agreement
from bgd.report.load import load
from bgd.report.markdown import render_overview
from bgd.report.section import Section
from bgd.report.verdicts import judge
from bgd.runs.digests import FILE, check_files

ROOT = Path(__file__).parents[2]
COMMAND = "bgd report results --markdown RESULTS.md --pages docs/results"
PAGES = ROOT / "docs" / "results"

pytestmark = pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="tested outside the repository")


def test_the_overview_is_generated():
    """If this fails, run the command above: it makes all of them."""
    sections = [Section(comparison, (), {}) for comparison in load(ROOT / "results")]
    (central,) = plot_agreement(judge([section.comparison for section in sections]))
    picture = (central, "docs/results/figures/agreement.svg")
    text = render_overview(sections, COMMAND, "Results", "docs/results", picture)
    assert (ROOT / "RESULTS.md").read_text(encoding="utf-8") == text
    assert len(text.splitlines()) <= 150
    assert COMMAND in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_page_is_linked_and_every_figure_is_shown():
    links = set(re.findall(r"\]\(docs/results/([^)#]+)\)", (ROOT / "RESULTS.md").read_text(encoding="utf-8")))
    central = {link for link in links if link.endswith(".svg")}
    assert links - central == {path.name for path in PAGES.glob("*.md")}
    texts = [page.read_text(encoding="utf-8") for page in PAGES.glob("*.md")]
    shown = central | {picture for text in texts for picture in re.findall(r"!\[.*\]\((.*?)\)", text)}
    figures = [path for path in PAGES.rglob("*") if path.suffix in (".png", ".svg")]
    assert {path.relative_to(PAGES).as_posix() for path in figures} == shown
    assert sum(path.stat().st_size for path in figures) < 8_000_000


@pytest.mark.parametrize("folder", sorted(path for path in (ROOT / "results").glob("*/")), ids=lambda path: path.name)
def test_no_published_number_has_changed_since(folder):
    """Measured by a benchmark again: ``make digests``."""
    covered = sorted(path.name for path in folder.iterdir() if path.name not in (FILE, "remarks.md"))
    check_files(folder, covered, covered, "since it was published", "restore it")


@pytest.mark.parametrize("folder", sorted((ROOT / "results").glob("*-short*/")), ids=lambda path: path.name)
def test_remarks_on_shortened_runs_quote_no_accuracies_of_the_paper(folder):
    """Nor do tables and verdicts: a run too short to agree is too short to differ."""
    text = " ".join((folder / "remarks.md").read_text(encoding="utf-8").split())
    assert not re.findall(r"\bpaper\b(?:'s)?[^.;:]{0,30}? \d\d(?:\.\d+)? ?(?:±|%|\))", text)
