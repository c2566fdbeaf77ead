"""One HTML page that needs nothing but itself: no network, no script to be read, no file beside it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bgd._version import __version__
from bgd.report import export as data
from bgd.report import formatting, tables
from bgd.report.figures.catalog import Plot
from bgd.report.figures.style import css_colours, inline_svg
from bgd.report.notes import caveats
from bgd.report.statistics import Verdict
from bgd.report.summary import Comparison, Entry, settings

SNIPPET = """\
from bgd import BGD

optimizer = BGD(model.parameters(), std_init=0.02)

for x, y in stream:          # no task ids, no boundaries
    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        return loss
    optimizer.step(closure)

model(x)                     # the weights are now the posterior mean
"""
"""What a reader of the page can do next; the tests run it."""


@dataclass(frozen=True)
class Section:
    """A comparison with its figures."""

    comparison: Comparison
    plots: Sequence[Plot]


def page(sections: Sequence[Section], command: str, title: str | None = None) -> str:
    """The page as text.

    Args:
        sections: what to show, in order.
        command: that made the page, for whoever wants to make it again.
        title: of the page; by default that of the only comparison, or a general one.

    >>> page([], "bgd report runs")[:15]
    '<!DOCTYPE html>'
    """
    environment = Environment(
        loader=PackageLoader("bgd.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"words": formatting.value, "duration": formatting.duration, "setting": formatting.setting}
    comparisons = [section.comparison for section in sections]
    verdicts = [verdict for c in comparisons for verdict in c.verdicts]
    default = comparisons[0].title if len(comparisons) == 1 else "Continual learning, compared"
    return environment.get_template("page.html.j2").render(
        title=title or default,
        sections=[_section(section, i, several=len(sections) > 1) for i, section in enumerate(sections)],
        facts=_facts(comparisons, verdicts),
        light=css_colours(dark=False),
        dark=css_colours(dark=True),
        version=__version__,
        snippet=SNIPPET,
        command=command,
        downloads={
            "summary.csv": _data_link("text/csv", data.to_csv(data.summary_records(comparisons))),
            "runs.csv": _data_link("text/csv", data.to_csv(data.run_records(comparisons))),
            "report.json": _data_link("application/json", data.to_json(comparisons)),
        },
    )


def _section(section: Section, number: int, several: bool) -> dict[str, Any]:
    comparison = section.comparison
    experiment = comparison.experiment
    anchor = f"c{number + 1}"
    preset = experiment.presets.get(comparison.preset) if experiment else None
    same, different = settings(comparison)
    return {
        "id": anchor,
        "title": comparison.title,
        "shows": experiment.shows if experiment else "",
        "source": experiment.source if experiment else "",
        "notes": experiment.notes if experiment else (),
        "remarks": [" ".join(block.split()) for block in comparison.remarks.split("\n\n") if block.strip()],
        "about": formatting.sentence(
            f"{comparison.preset}: {preset.about}" if preset and preset.about else comparison.preset
        ),
        "changes": comparison.changes,
        # the head of a page with one comparison says the same in large numbers
        "chips": [chip for chip in _chips(comparison) if several or chip[1] == "bad"],
        "columns": comparison.columns,
        "rows": [(row, [_cell(comparison, row, column) for column in comparison.columns]) for row in comparison.rows],
        "detail": tables.detail(comparison),
        "extras": tables.extras(comparison),
        "measures": tables.measures(comparison),
        "unfinished": comparison.unfinished,
        "caveats": caveats(comparison),
        "large": [_figure(plot, anchor) for plot in section.plots if not plot.small],
        "small_title": _small_title([plot.name for plot in section.plots if plot.small]),
        "small": [_figure(plot, anchor) for plot in section.plots if plot.small],
        "same": same,
        "different": list(different.items()),
        "seeds": formatting.seeds_in_words([run.config.seed for run in comparison.runs]),
        "environment": _environment(comparison),
        "scaled": comparison.has_paper and not comparison.verdicts,
    }


def _small_title(names: Sequence[str]) -> str:
    kinds = {"matrix": "Accuracy on each task after each stage", "stds": "Posterior stds"}
    return "; ".join(title for kind, title in kinds.items() if any(name.startswith(kind) for name in names))


def _figure(plot: Plot, anchor: str) -> dict[str, Any]:
    svg = Markup(inline_svg(plot.figure, f"{anchor}-{plot.name}"))
    return {"svg": svg, "title": plot.title, "caption": plot.caption, "alt": plot.alt}


def _cell(comparison: Comparison, row: str, column: str) -> dict[str, Any] | None:
    entry = comparison.entries.get((row, column))
    if entry is None:
        return None
    ours = entry.ours
    return {
        "value": formatting.value(ours) if ours else None,
        "state": "" if ours else ("failed" if any(u.state == "failed" for u in entry.unfinished) else "not finished"),
        "bar": max(0.0, min(100.0, ours.mean)) if ours and ours.mean == ours.mean else None,
        "best": entry.best,
        "paper": formatting.value(entry.paper) if entry.paper else None,
        "tick": entry.paper.mean if entry.paper else None,
        "verdict": entry.verdict.name.lower(),
        "said": _said(entry),
        "partial": f"{len(entry.runs)} of {formatting.count(entry.wanted, 'seed')}"
        if entry.unfinished and ours
        else "",
        "warned": f"{entry.warned} of {formatting.count(len(entry.runs), 'run')} with a warning"
        if entry.warned
        else "",
    }


def _said(entry: Entry) -> str:
    return tables.agreement(entry) if entry.verdict is not Verdict.UNKNOWN else ""


def _chips(comparison: Comparison) -> list[tuple[str, str]]:
    """Short facts and their tone."""
    runs, missing = len(comparison.runs), len(comparison.unfinished)
    chips = [(formatting.count(runs, "run"), "")]
    if missing:
        chips.append((f"{missing} of {formatting.count(runs + missing, 'run')} missing", "bad"))
    if comparison.seconds:
        chips.append((f"{formatting.duration(comparison.seconds)} of computing", ""))
    if verdicts := comparison.verdicts:
        agree = sum(v is Verdict.AGREES for v in verdicts)
        chips.append((f"{agree} of {len(verdicts)} agree with the paper", "good" if agree == len(verdicts) else ""))
    return chips


def _facts(comparisons: Sequence[Comparison], verdicts: Sequence[Verdict]) -> list[tuple[str, str]]:
    """The big numbers of the head: (number, what it counts)."""
    runs = [run for c in comparisons for run in c.runs]
    facts = [
        (str(len({run.config.row or run.config.method for run in runs})), "methods"),
        (str(len(runs)), "runs"),
        (str(len({run.config.seed for run in runs})), "seeds"),
    ]
    facts = [(number, what[:-1] if number == "1" else what) for number, what in facts]
    if seconds := sum(c.seconds for c in comparisons):
        facts.append((formatting.duration(seconds), "of computing"))
    if verdicts:
        facts.append((f"{sum(v is Verdict.AGREES for v in verdicts)} / {len(verdicts)}", "agree with the paper"))
    return facts


def _environment(comparison: Comparison) -> list[tuple[str, str]]:
    """What the runs say of where they took place; several values if they differ."""
    machines = [run.machine for run in comparison.runs if run.machine]
    found: dict[str, list[str]] = {}
    for machine in machines:
        versions = dict(sorted(machine.versions.items()))
        facts = {
            "command": machine.command,
            "platform": machine.platform,
            "threads": str(machine.threads),
            "commit": machine.commit or "",
            **versions,
        }
        for name, text in facts.items():
            if text and text not in found.setdefault(name, []):
                found[name].append(text)
    return [(name, "; ".join(texts)) for name, texts in found.items() if texts]


def _data_link(kind: str, text: str) -> str:
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"
