"""The report as Markdown, for a repository: the same text for the same results, so that a diff is meaningful."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bgd.report import formatting
from bgd.report.figures.types import Plot
from bgd.report.findings import compare_highlighted, headline
from bgd.report.notes import collect_notes
from bgd.report.section import Section, by_experiment, headings
from bgd.report.summary.settings import split_settings
from bgd.report.summary.types import Comparison
from bgd.report.tables.catalog import extra_tables
from bgd.report.tables.measures import measures
from bgd.report.tables.render import markdown_text, to_markdown
from bgd.report.tables.results import detail, overview
from bgd.report.tables.verdict import verdict_table
from bgd.report.verdicts import Item, Outcome, describe_cell, judge, summarise_verdicts

RULE = (
    "A value **agrees** with the paper's if our mean is within the paper's spread, or within two standard errors (SE) "
    "of the difference, for which the paper's spread is used where ours is of one seed. Smoke tests, on less than a "
    "tenth of the paper's training, are never compared with it. A spread is a standard deviation over seeds; beyond "
    "chance means by Welch's test at 5 %, of two means."
)

MOST_LISTED = 40
"""Of one outcome; more are on the pages."""

VISIBLE_COMMANDS = 2
"""More commands than this are folded away."""


def render_overview(
    sections: Sequence[Section], command: str, title: str, pages: str, picture: tuple[Plot, str] | None = None
) -> str:
    """The document above the pages: what became of the paper's values, and what each experiment found.

    Args:
        sections: in order.
        command: that makes this file again.
        title: of the document.
        pages: where the pages are, relative to the document.
        picture: the central figure, and its path.

    >>> print(render_overview([], "bgd report runs", "Results", "pages").splitlines()[0])
    # Results
    """
    comparisons = [section.comparison for section in sections]
    items = judge(comparisons)
    links = {own[0].comparison.name: f"{pages}/{name}.md" for name, own in by_experiment(sections).items()}
    parts = [f"# {markdown_text(title)}", markdown_text(summarise_verdicts(comparisons, items))]
    if picture is not None:
        parts.append(f"![{picture[0].alt}]({picture[1]})\n\n*{picture[0].caption}*")
    if any(item.cells for item in items):
        parts += [RULE, "## What became of the paper's values", to_markdown(verdict_table(items))]
        parts += _outcome(items, Outcome.WITH_DEVIATION) + _outcome(items, Outcome.OPEN)
    theirs = {item.experiment.name for item in items}
    parts += _found("What runs of the paper's experiments found", [c for c in comparisons if c.name in theirs], links)
    parts += _found("Beyond the paper", [c for c in comparisons if c.name not in theirs], links)
    parts.append(f"Made by\n\n{_code(command)}")
    return _join(parts)


def _found(heading: str, comparisons: Sequence[Comparison], links: Mapping[str, str]) -> list[str]:
    """A paragraph for each experiment, and a line for each of its comparisons."""
    parts = [f"## {heading}"] * bool(comparisons)
    for name in dict.fromkeys(one.name for one in comparisons):
        own = [one for one in comparisons if one.name == name]
        lines = [f"- **[{markdown_text(own[0].title)}]({links[name]})**"]
        lines[0] += f": {markdown_text(headline(own[0]))}" if len(own) == 1 else ""
        lines += [f"  - {_scale_name(one)}: {markdown_text(headline(one))}" for one in own if len(own) > 1]
        parts.append("\n".join(lines))
    return parts


def render_section_page(sections: Sequence[Section], pictures: Sequence[Mapping[str, str]], home: str) -> str:
    """The page of one experiment.

    Args:
        sections: its comparisons.
        pictures: for each, the path of every figure by its name; others are left out.
        home: the document above.
    """
    comparisons = [section.comparison for section in sections]
    parts = [f"# {markdown_text(comparisons[0].title)}", f"[All results]({home})"]
    for section, heading, paths in zip(sections, headings(comparisons), pictures, strict=True):
        parts += [f"## {markdown_text(heading)}"] * (len(sections) > 1)
        parts += _section(section, paths)
    return _join(parts)


def harmless(text: str) -> str:
    """Markdown of somebody else: without HTML, and without links that run code.

    >>> harmless("**a** <b>c</b> [d](javascript:e) <https://f.g> 1 < 2")
    '**a** &lt;b>c&lt;/b> [d](e) <https://f.g> 1 < 2'
    """
    without_html = re.sub(r"<(?!https?://)(?=[A-Za-z/!?])", "&lt;", text)
    without_code = re.sub(r"(javascript|vbscript|data)\s*:", "", without_html, flags=re.IGNORECASE)
    opened = ""  # a block of code that does not end would turn ours inside out
    for fence in re.findall(r"^ {0,3}(`{3,}|~{3,})", without_code, flags=re.MULTILINE):
        opened = fence if not opened else "" if fence.startswith(opened) else opened
    return f"{without_code}\n{opened}" if opened else without_code


def _code(text: str) -> str:
    """A block of code that no line of the text can end."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _join(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _outcome(items: Sequence[Item], outcome: Outcome) -> list[str]:
    """A heading and a line for each cell with this outcome."""
    lines = [
        f"- {markdown_text(describe_cell(cell))} ({markdown_text(item.experiment.name)})"
        for item in items
        for cell in item.cells
        if cell.outcome is outcome
    ]
    if len(lines) > MOST_LISTED:
        lines = [*lines[:MOST_LISTED], f"- and {len(lines) - MOST_LISTED} more, on the pages"]
    return [f"### {str(outcome).capitalize()}", "\n".join(lines)] if lines else []


def _scale_name(comparison: Comparison) -> str:
    return markdown_text(", ".join(filter(None, (comparison.preset, *comparison.overrides))) or "runs")


def _section(section: Section, pictures: Mapping[str, str]) -> list[str]:
    comparison, experiment = section.comparison, section.comparison.experiment
    parts = [f"**{markdown_text(headline(comparison))}**", _bullets(compare_highlighted(comparison))]
    parts += [harmless(comparison.remarks)]
    parts += [f"What to look for: {markdown_text(experiment.shows)}"] if experiment and experiment.shows else []
    parts += [_provenance(comparison), _commands(comparison), _unfinished(comparison)]
    parts.append(_bullets(collect_notes(comparison)))
    parts += [to_markdown(overview(comparison))] * (len(comparison.columns) > 1) + [to_markdown(detail(comparison))]
    parts += [_legend(comparison)]
    parts += [f"{markdown_text(table.title)}\n\n{to_markdown(table)}" for table in extra_tables(comparison)]
    parts += _pictures(section, pictures)
    if (table := measures(comparison)) is not None:
        parts.append(_folded("Forgetting, transfer, and inference methods, %", to_markdown(table)))
    parts.append(_folded("Settings", _settings(comparison)))
    return parts


def _legend(comparison: Comparison) -> str:
    """What the numbers of the table are: of bold and spreads only where there are some."""
    entries = comparison.entries.values()
    spread = any(entry.ours and entry.ours.spread is not None for entry in entries)
    bold = any(entry.best for entry in entries)
    return (
        "Average accuracy over all tasks at the end"
        + " with its standard deviation over seeds" * spread
        + ". Times are processor time, or the clock's where that was not measured."
        + " Bold: no other is higher on the seeds that both have." * bold
    )


def _unfinished(comparison: Comparison) -> str:
    if not comparison.unfinished:
        return ""
    lines = [
        f"- {markdown_text(u.config.title)}: {u.state} {markdown_text(u.reason)}".rstrip()
        for u in comparison.unfinished
    ]
    return "**Not complete.** Means are over the finished runs; these are missing:\n\n" + "\n".join(lines)


def _pictures(section: Section, paths: Mapping[str, str]) -> list[str]:
    shown = [plot for plot in section.plots if plot.name in paths]
    parts = [_picture(plot, paths[plot.name]) for plot in shown if not plot.secondary]
    more = [_picture(plot, paths[plot.name]) for plot in shown if plot.secondary]
    return [*parts, _folded("More figures", *more)] if more else parts


def _picture(plot: Plot, path: str) -> str:
    return f"![{markdown_text(f'{plot.title}. {plot.alt}')}]({path})\n\n{markdown_text(plot.caption)}"


def _folded(title: str, *parts: str) -> str:
    return f"<details><summary>{title}</summary>\n\n" + "\n\n".join(parts) + "\n\n</details>"


def _bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {markdown_text(text)}" for text in texts)


def _settings(comparison: Comparison) -> str:
    shared, own = split_settings(comparison)
    lines = [f"- all: {_list_settings(shared)}"]
    lines += [f"- {markdown_text(row)}: {_list_settings(values)}" for row, values in own.items()]
    choices = comparison.experiment.notes if comparison.experiment else ()
    if choices:
        lines = ["Choices:\n", _bullets(choices), "\nSettings:\n", *lines]
    return "\n".join(lines)


def _list_settings(values: Mapping[str, Any]) -> str:
    return (
        ", ".join(f"{markdown_text(key)} {markdown_text(formatting.setting(value))}" for key, value in values.items())
        or "nothing"
    )


def _provenance(comparison: Comparison) -> str:
    """Source, preset, seeds and time."""
    experiment = comparison.experiment
    preset = experiment.presets.get(comparison.preset) if experiment else None
    facts = []
    if experiment and experiment.source:
        facts.append(f"Paper: {markdown_text(experiment.source)}.")
    about = f": {preset.about}" if preset and preset.about else ""
    if comparison.preset:
        facts.append(markdown_text(formatting.sentence(f"Preset {comparison.preset}{about}")))
    if comparison.overrides:
        facts.append(f"Changed: {markdown_text(', '.join(comparison.overrides))}.")
    if comparison.runs:
        facts.append(formatting.seeds_sentence([run.config.seed for run in comparison.runs]))
    machines = [run.machine for run in comparison.runs if run.machine]
    if machines:
        facts.append(
            f"{formatting.duration(comparison.seconds)} of computing on {markdown_text(machines[0].platform)}."
        )
    return " ".join(facts)


def _commands(comparison: Comparison) -> str:
    """The commands that made the runs; folded away where there are many."""
    machines = [run.machine for run in comparison.runs if run.machine]
    commands = dict.fromkeys(machine.command for machine in machines if machine.command)
    if not commands:
        return ""
    block = _code("\n".join(commands))
    return block if len(commands) <= VISIBLE_COMMANDS else _folded(f"The {len(commands)} commands that made it", block)
