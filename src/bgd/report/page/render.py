"""HTML pages: each contains everything that it shows, without network access, and can be read without scripts."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bgd._version import __version__
from bgd.errors import MissingExtraError
from bgd.report import export, formatting
from bgd.report.figures.save import css_colours
from bgd.report.findings import headline
from bgd.report.page.content import describe_chips, describe_section, describe_table
from bgd.report.page.width import STEPS
from bgd.report.section import Section, by_experiment, headings
from bgd.report.summary.types import Comparison
from bgd.report.tables.verdict import verdict_table
from bgd.report.verdicts import Outcome, count_outcomes, judge, summarise_verdicts

if TYPE_CHECKING:
    from jinja2 import Environment

TITLE = "Continual learning, compared"

SNIPPET = """\
from bgd import BGD

optimizer = BGD(model.parameters())

for x, y in stream:          # no task ids, no boundaries
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()

model(x)                     # the weights are now the posterior mean
"""
"""What a reader of the page can do next; the tests run it."""


def render_pages(sections: Sequence[Section], command: str, title: str | None = None) -> dict[str, str]:
    """The pages by file name: ``index.html``, and beside it one for each experiment where there are several.

    >>> list(render_pages([], "bgd report runs"))
    ['index.html']
    """
    pages = by_experiment(sections)
    if len(pages) < 2:
        return {"index.html": render_page(sections, command, title)}
    index = render_index(pages, command, title)
    return {"index.html": index} | {
        f"{name}.html": render_page(own, command, home="index.html") for name, own in pages.items()
    }


def render_page(sections: Sequence[Section], command: str, title: str | None = None, *, home: str = "") -> str:
    """One page, which contains everything that it shows.

    Args:
        sections: in order.
        command: that made the page, for whoever wants to make it again.
        title: of the page; by default that of the only comparison or experiment, or a general one.
        home: a link to the page above, if there is one.

    >>> render_page([], "bgd report runs")[:15]
    '<!DOCTYPE html>'
    """
    comparisons = [section.comparison for section in sections]
    titles = list(dict.fromkeys(comparison.title for comparison in comparisons))
    names = headings(comparisons)
    several = len(sections) > 1
    return _render(
        "page.html.j2",
        title=title or (titles[0] if len(titles) == 1 else TITLE),
        home=home,
        found=headline(comparisons[0]) if comparisons else "",
        facts=_facts(comparisons),
        links=[(name, f"#c{i + 1}") for i, name in enumerate(names)],
        links_are="Comparisons",
        sections=[describe_section(section, names[i], i, several) for i, section in enumerate(sections)],
        snippet=SNIPPET,
        command=command,
        downloads=_downloads(comparisons),
    )


def render_index(pages: Mapping[str, Sequence[Section]], command: str, title: str | None = None) -> str:
    """The page above those of the experiments: what was found in each, and what became of the paper's values.

    >>> "no experiments" in render_index({}, "bgd report runs")
    True
    """
    comparisons = [section.comparison for own in pages.values() for section in own]
    entries = []
    for name, own in pages.items():
        listed = [section.comparison for section in own]
        parts = [
            {"heading": heading, "found": headline(one), "chips": describe_chips(one)}
            for heading, one in zip(headings(listed), listed, strict=True)
        ]
        entries.append({"target": f"{quote(name)}.html", "title": listed[0].title, "parts": parts})
    items = judge(comparisons)
    return _render(
        "index.html.j2",
        title=title or TITLE,
        home="",
        found=summarise_verdicts(comparisons, items),
        facts=_facts(comparisons),
        links=[],
        links_are="",
        entries=entries,
        verdict=describe_table(verdict_table(items)) if any(item.cells for item in items) else None,
        command=command,
        downloads={},
    )


def _render(template: str, **values: Any) -> str:
    light, dark = css_colours(dark=False), css_colours(dark=True)
    made = _environment().get_template(template)
    return made.render(**values, light=light, dark=dark, steps=STEPS, version=__version__)


@cache
def _environment() -> Environment:
    """Kept, with the templates that it has compiled."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("jinja2", "experiments") from None

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bgd.report.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"setting": formatting.setting, "bound": formatting.bound}
    return environment


def _downloads(comparisons: Sequence[Comparison]) -> dict[str, str]:
    return {
        "summary.csv": _data_link("text/csv", export.to_csv(export.summary_records(comparisons))),
        "runs.csv": _data_link("text/csv", export.to_csv(export.run_records(comparisons))),
        "report.json": _data_link("application/json", export.to_json(comparisons, indent=None)),
    }


def _facts(comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    """The big numbers of the head: (number, what it counts)."""
    runs = [run for c in comparisons for run in c.runs]
    facts = [
        (str(len({run.config.row or run.config.method for run in runs})), "methods"),
        (str(len(runs)), "runs"),
        (str(len({run.config.seed for run in runs})), "seeds"),
    ]
    facts = [(number, name[:-1] if number == "1" else name) for number, name in facts]
    if seconds := sum(c.seconds for c in comparisons):
        facts.append((formatting.duration(seconds), "of computing"))
    counts = count_outcomes(judge(comparisons))
    if compared := sum(counts[one] for one in (Outcome.AS_STATED, Outcome.WITH_DEVIATION, Outcome.OPEN)):
        facts.append((f"{counts[Outcome.AS_STATED]} / {compared}", "agree with the paper as stated"))
    return facts


def _data_link(kind: str, text: str) -> str:
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"
