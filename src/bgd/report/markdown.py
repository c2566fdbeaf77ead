"""The report as Markdown, for a repository: the same text for the same results, so that a diff is meaningful."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bgd.report import formatting
from bgd.report.figures.types import Plot
from bgd.report.notes import collect_notes
from bgd.report.section import Section
from bgd.report.statistics import Verdict
from bgd.report.summary.settings import split_settings
from bgd.report.summary.types import Comparison
from bgd.report.tables.catalog import extra_tables
from bgd.report.tables.measures import measures
from bgd.report.tables.render import markdown_text, to_markdown
from bgd.report.tables.results import detail, overview

RULE = (
    "A value **agrees** with the paper's if our mean is within the paper's spread, or within two standard errors (SE) "
    "of the difference, for which the paper's spread is used where ours is of one seed; ↑ higher and ↓ lower are "
    "outside both. Spreads are standard deviations over seeds, times are processor time, or the clock's where that was "
    "not measured. Accuracies are averages over all tasks at the end, in percent; bold in a column is the method that "
    "no other beats on the seeds that both have."
)

VISIBLE_COMMANDS = 2
"""More commands than this are folded away."""


def render_markdown(
    sections: Sequence[Section], command: str, pictures: Mapping[tuple[int, str], str], title: str
) -> str:
    """The whole report.

    Args:
        sections: in order.
        command: that makes this file again.
        pictures: the path of each figure, by the section's number and the figure's name; others are left out.
        title: of the document.

    >>> print(render_markdown([], "bgd report runs", {}, "Results").splitlines()[0])
    # Results
    """
    parts = [f"# {markdown_text(title)}", RULE, _index(sections), f"Made by\n\n```\n{command}\n```"]
    for number, heading in enumerate(_headings(sections)):
        own = {name: path for (n, name), path in pictures.items() if n == number}
        parts += [f"## {markdown_text(heading)}", *_section(sections[number], own)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _index(sections: Sequence[Section]) -> str:
    lines = ["| comparison | preset | runs | agree with the paper | computing |", "|:--|:--|--:|--:|--:|"]
    for section, heading in zip(sections, _headings(sections), strict=True):
        c = section.comparison
        agree = sum(v is Verdict.AGREES for v in c.verdicts)
        total = len(c.runs) + len(c.unfinished)
        runs = str(total) if not c.unfinished else f"{len(c.runs)} of {total}"
        agreement = f"{agree} of {len(c.verdicts)}" if c.verdicts else formatting.NONE
        cells = (
            f"[{markdown_text(heading)}](#{_anchor(heading)})",
            markdown_text(c.preset),
            runs,
            agreement,
            formatting.duration(c.seconds),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) if sections else ""


def _headings(sections: Sequence[Section]) -> list[str]:
    """A heading for each, all distinct: links refer to them."""
    titles = [section.comparison.title for section in sections]
    named = [
        f"{title} ({', '.join((section.comparison.preset, *section.comparison.overrides))})"
        if titles.count(title) > 1
        else title
        for title, section in zip(titles, sections, strict=True)
    ]
    return [f"{name}, {named[:i].count(name) + 1}" if named.count(name) > 1 else name for i, name in enumerate(named)]


def _anchor(title: str) -> str:
    """As GitHub makes it from a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _section(section: Section, pictures: Mapping[str, str]) -> list[str]:
    comparison, experiment = section.comparison, section.comparison.experiment
    parts = [markdown_text(experiment.shows)] if experiment and experiment.shows else []
    parts += [comparison.remarks, _provenance(comparison), _commands(comparison), _unfinished(comparison)]
    parts.append(_bullets(collect_notes(comparison)))
    parts += [to_markdown(overview(comparison))] * (len(comparison.columns) > 1) + [to_markdown(detail(comparison))]
    parts += [f"{markdown_text(table.title)}\n\n{to_markdown(table)}" for table in extra_tables(comparison)]
    parts += _pictures(section, pictures)
    if (table := measures(comparison)) is not None:
        parts.append(_folded("Forgetting, transfer, and inference methods, %", to_markdown(table)))
    parts.append(_folded("Settings", _settings(comparison)))
    return parts


def _unfinished(comparison: Comparison) -> str:
    if not comparison.unfinished:
        return ""
    lines = [
        f"- {markdown_text(u.config.title)}: {u.state} {markdown_text(u.reason)}".rstrip()
        for u in comparison.unfinished
    ]
    return "**Not complete.** Means are over the finished runs; these are missing:\n\n" + "\n".join(lines)


def _pictures(section: Section, paths: Mapping[str, str]) -> list[str]:
    experiment = section.comparison.experiment
    curves = experiment is not None and experiment.figures[:1] == ("learning-curves",)
    shown = [plot for plot in section.plots if plot.name in paths]
    parts = [_picture(plot, paths[plot.name]) for plot in shown if not _is_secondary(plot, curves)]
    more = [_picture(plot, paths[plot.name]) for plot in shown if _is_secondary(plot, curves)]
    if more:
        parts.append(_folded("More figures: learning curves, accuracy on each task after each stage", *more))
    return parts


def _picture(plot: Plot, path: str) -> str:
    return f"![{markdown_text(f'{plot.title}. {plot.alt}')}]({path})\n\n{markdown_text(plot.caption)}"


def _is_secondary(plot: Plot, curves: bool) -> bool:
    """Whether a figure is folded away; learning curves are not where they are the experiment's main figure."""
    return plot.small or plot.name.startswith("training-loss" if curves else ("learning-curves", "training-loss"))


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
    block = "```\n" + "\n".join(commands) + "\n```"
    return block if len(commands) <= VISIBLE_COMMANDS else _folded(f"The {len(commands)} commands that made it", block)
