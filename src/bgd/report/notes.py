"""What must stand beside a table: stand-ins for data, and what runs warn of."""

from __future__ import annotations

import re

from bgd.experiments.selection import select_runs
from bgd.report import formatting
from bgd.report.summary import Comparison
from bgd.runs.result import RunResult


def caveats(comparison: Comparison) -> list[str]:
    """Each once, with whom it concerns, since a collapsed posterior must not pass for just a bad number.

    >>> from bgd.report.summary import compare
    >>> caveats(compare([]))
    []
    """
    notes = dict.fromkeys(run.data_note for run in comparison.runs if run.data_note)
    return [
        *notes,
        *left_out(comparison),
        *never_run(comparison),
        *(line for entry in comparison.entries.values() for line in _warnings(entry.runs)),
    ]


def left_out(comparison: Comparison) -> list[str]:
    """A line on runs that are there but do not count, if there are any.

    >>> from bgd.report.summary import compare
    >>> left_out(compare([]))
    []
    """
    if not comparison.outdated:
        return []
    return [
        f"{formatting.count(comparison.outdated, 'run')} left out: made from another declaration, or done again since"
    ]


def never_run(comparison: Comparison) -> list[str]:
    """A line on what the experiment declares at this preset and nobody has begun, if there is any.

    >>> from bgd.report.summary import compare
    >>> never_run(compare([]))
    []
    """
    experiment = comparison.experiment
    if experiment is None or comparison.preset not in experiment.presets:
        return []
    missing: dict[str, list[str]] = {}
    declared: dict[str, set[str]] = {}
    for row, column, _ in select_runs(experiment, comparison.preset, seeds=[0]):
        declared.setdefault(row, set()).add(column)
        if (row, column) not in comparison.entries:
            missing.setdefault(row, []).append(column)
    said = [
        row if len(columns) == len(declared[row]) else f"{row} ({', '.join(columns)})"
        for row, columns in missing.items()
    ]
    return [f"Declared and not run: {'; '.join(said)}"] if said else []


def _warnings(runs: tuple[RunResult, ...]) -> list[str]:
    """One line for each message of the runs of one row and column, which differ in their seeds."""
    found: dict[str, list[tuple[RunResult, str]]] = {}
    for run in runs:
        for text in run.warnings:
            # the numbers in it differ from run to run, the message is the same
            found.setdefault(re.sub(r"\d[\d.]*(e[+-]\d+)?", "", text), []).append((run, text))
    lines = []
    for same in found.values():
        (first, text), numbers = same[0], sorted({run.config.seed for run, _ in same})
        if len(numbers) == 1:
            lines.append(f"{first.config.title}: {text}")
        else:
            who = first.config.title.removesuffix(f"seed {first.config.seed}")
            lines.append(f"{who}{len(numbers)} runs (seeds {formatting.seeds(numbers)}), the first one's words: {text}")
    return lines
