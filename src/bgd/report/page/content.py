"""What a page shows of one comparison, as plain values for the template."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bgd.report import formatting
from bgd.report.figures.save import inline_svg
from bgd.report.figures.types import Plot
from bgd.report.findings import compare_highlighted, headline
from bgd.report.notes import collect_notes
from bgd.report.page.width import needed_width
from bgd.report.section import Section
from bgd.report.statistics import Verdict
from bgd.report.summary.scale import Scale
from bgd.report.summary.settings import split_settings
from bgd.report.summary.types import Comparison, Entry
from bgd.report.tables.catalog import extra_tables
from bgd.report.tables.measures import measures
from bgd.report.tables.results import describe_agreement, describe_missing_result, detail
from bgd.report.tables.types import Table

if TYPE_CHECKING:
    from markupsafe import Markup


def describe_section(section: Section, heading: str, number: int, several: bool) -> dict[str, Any]:
    """The values of the template ``section.html.j2``.

    Args:
        section: to show.
        heading: of it, distinct on the page.
        number: of the section on the page, from 0.
        several: whether the page has other sections.
    """
    comparison = section.comparison
    experiment = comparison.experiment
    anchor = f"c{number + 1}"
    preset = experiment.presets.get(comparison.preset) if experiment else None
    shared, own = split_settings(comparison)
    other = measures(comparison)
    return {
        "id": anchor,
        "title": heading,
        "found": headline(comparison) if number else "",  # the first is in the head of the page
        "beside": compare_highlighted(comparison),
        "shows": experiment.shows if experiment else "",
        "source": experiment.source if experiment else "",
        "choices": experiment.notes if experiment else (),
        "remarks": [to_inline_html(block) for block in comparison.remarks.split("\n\n") if block.strip()],
        "about": formatting.sentence(
            f"{comparison.preset}: {preset.about}" if preset and preset.about else comparison.preset
        ),
        "overrides": comparison.overrides,
        # the head of a page with one comparison shows the same in large numbers
        "chips": [chip for chip in describe_chips(comparison) if several or chip[1] == "bad"],
        "columns": comparison.columns,
        "rows": [(row, [_cell(comparison, row, column) for column in comparison.columns]) for row in comparison.rows],
        "spread": any(e.ours and e.ours.spread is not None for e in comparison.entries.values()),
        "bold": any(e.best for e in comparison.entries.values()),
        "width": needed_width(_overview_texts(comparison)),
        "detail": describe_table(detail(comparison)),
        "extras": [describe_table(table) for table in extra_tables(comparison)],
        "measures": describe_table(other) if other else None,
        "unfinished": comparison.unfinished,
        "notes": collect_notes(comparison),
        "large": [_figure(plot, section, anchor) for plot in section.plots if not plot.secondary],
        "small": [_figure(plot, section, anchor) for plot in section.plots if plot.secondary],
        "shared": shared,
        "own": list(own.items()),
        "seeds": formatting.seeds_sentence([run.config.seed for run in comparison.runs]),
        "environment": _environment(comparison),
        "other_scale": comparison.has_paper and not comparison.verdicts,
    }


def describe_chips(comparison: Comparison) -> list[tuple[str, str]]:
    """Short facts and their tone."""
    runs, missing = len(comparison.runs), len(comparison.unfinished)
    seeds = len({run.config.seed for run in comparison.runs})
    chips = [(formatting.count(runs, "run"), ""), (formatting.count(seeds, "seed"), "")]
    found = {entry.scale for entry in comparison.entries.values() if entry.scale}
    if scales := [str(scale) for scale in Scale if scale in found]:
        chips.append((f"scale: {', '.join(scales)}", ""))
    if missing:
        chips.append((f"{missing} of {formatting.count(runs + missing, 'run')} missing", "bad"))
    if comparison.seconds:
        chips.append((f"{formatting.duration(comparison.seconds)} of computing", ""))
    if verdicts := comparison.verdicts:
        agree = sum(v is Verdict.AGREES for v in verdicts)
        chips.append((f"{agree} of {len(verdicts)} agree with the paper", "good" if agree == len(verdicts) else ""))
    return chips


def describe_table(table: Table) -> dict[str, Any]:
    """The values of the macro ``data_table``."""
    texts = [list(table.headers), *([cell.text for cell in row] for row in table.rows)]
    return {"title": table.title, "headers": table.headers, "rows": table.rows, "width": needed_width(texts)}


def _overview_texts(comparison: Comparison) -> list[list[str]]:
    rows = [["Method", *comparison.columns]]
    for row in comparison.rows:
        entries = [comparison.entries.get((row, column)) for column in comparison.columns]
        rows.append([row, *(f"paper {formatting.value(e.paper)}" if e else "" for e in entries)])
    return rows


def to_inline_html(block: str) -> Markup:
    """A paragraph of Markdown: strong words and code; all else is shown as it was written.

    >>> str(to_inline_html("**A** is `b < c` <i>"))
    '<b>A</b> is <code>b &lt; c</code> &lt;i&gt;'
    """
    from markupsafe import Markup, escape  # comes with jinja2

    text = str(escape(" ".join(block.split())))
    text = re.sub(r"\*\*(\S(?:[^*]*\S)?)\*\*", r"<b>\1</b>", text)
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", text))


def _figure(plot: Plot, section: Section, anchor: str) -> dict[str, Any]:
    from markupsafe import Markup  # comes with jinja2

    svg = Markup(inline_svg(section.drawn[plot.name].decode(), f"{anchor}f{section.plots.index(plot)}"))
    return {"svg": svg, "title": plot.title, "caption": plot.caption, "alt": plot.alt}


def _cell(comparison: Comparison, row: str, column: str) -> dict[str, Any] | None:
    entry = comparison.entries.get((row, column))
    if entry is None:
        return None
    ours = entry.ours
    return {
        "value": formatting.value(ours) if ours else None,
        "state": "" if ours else describe_missing_result(entry),
        "bar": max(0.0, min(100.0, ours.mean)) if ours and ours.mean == ours.mean else None,
        "best": entry.best,
        "paper": formatting.value(entry.paper) if entry.paper else None,
        "tick": entry.paper.mean if entry.paper else None,
        "verdict": entry.verdict.name.lower(),
        "agreement": describe_agreement(entry) if entry.verdict is not Verdict.UNKNOWN else "",
        "partial": _describe_partial(entry),
        "warned": _describe_warned(entry),
    }


def _describe_partial(entry: Entry) -> str:
    if not entry.unfinished or not entry.ours:
        return ""
    return f"{len(entry.runs)} of {formatting.count(entry.planned, 'seed')}"


def _describe_warned(entry: Entry) -> str:
    if not entry.warned:
        return ""
    return f"{entry.warned} of {formatting.count(len(entry.runs), 'run')} with a warning"


def _environment(comparison: Comparison) -> list[tuple[str, str]]:
    """Where the runs were computed; several values where they differ."""
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
