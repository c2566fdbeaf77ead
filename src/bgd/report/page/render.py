"""One HTML page that contains everything it shows: no network access, no files beside it, readable without scripts."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from bgd._version import __version__
from bgd.errors import MissingExtraError
from bgd.report import export, formatting
from bgd.report.figures.save import css_colours
from bgd.report.page.content import describe_section
from bgd.report.section import Section
from bgd.report.statistics import Verdict
from bgd.report.summary.types import Comparison

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


def render_page(sections: Sequence[Section], command: str, title: str | None = None) -> str:
    """The page as text.

    Args:
        sections: in order.
        command: that made the page, for whoever wants to make it again.
        title: of the page; by default that of the only comparison, or a general one.

    >>> render_page([], "bgd report runs")[:15]
    '<!DOCTYPE html>'
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "experiments") from None

    environment = Environment(
        loader=PackageLoader("bgd.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["setting"] = formatting.setting
    comparisons = [section.comparison for section in sections]
    default = comparisons[0].title if len(comparisons) == 1 else "Continual learning, compared"
    return environment.get_template("page.html.j2").render(
        title=title or default,
        sections=[describe_section(section, i, several=len(sections) > 1) for i, section in enumerate(sections)],
        facts=_facts(comparisons),
        light=css_colours(dark=False),
        dark=css_colours(dark=True),
        version=__version__,
        snippet=SNIPPET,
        command=command,
        downloads={
            "summary.csv": _data_link("text/csv", export.to_csv(export.summary_records(comparisons))),
            "runs.csv": _data_link("text/csv", export.to_csv(export.run_records(comparisons))),
            "report.json": _data_link("application/json", export.to_json(comparisons)),
        },
    )


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
    if verdicts := [verdict for c in comparisons for verdict in c.verdicts]:
        facts.append((f"{sum(v is Verdict.AGREES for v in verdicts)} / {len(verdicts)}", "agree with the paper"))
    return facts


def _data_link(kind: str, text: str) -> str:
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"
