"""Notes that belong beside a table: substitute data, excluded and missing runs, warnings of runs."""

from __future__ import annotations

import re

from bgd.experiments.selection import select_runs
from bgd.report import formatting
from bgd.report.summary.types import Comparison
from bgd.runs.result import RunResult


def collect_notes(comparison: Comparison) -> list[str]:
    """Each once, with the rows it concerns: a collapsed posterior must not pass for just a bad number.

    >>> from bgd.report.summary import compare
    >>> collect_notes(compare([]))
    []
    """
    return [
        *dict.fromkeys(run.data_note for run in comparison.runs if run.data_note),
        *excluded_runs(comparison),
        *missing_rows(comparison),
        *(line for entry in comparison.entries.values() for line in _warnings(entry.runs)),
    ]


def excluded_runs(comparison: Comparison) -> list[str]:
    """A line on runs of the folder that do not count, if there are any.

    >>> from bgd.report.summary import compare
    >>> excluded_runs(compare([]))
    []
    """
    if not comparison.outdated:
        return []
    runs = formatting.count(comparison.outdated, "run")
    return [f"{runs} excluded: made from another declaration, or run again since"]


def missing_rows(comparison: Comparison) -> list[str]:
    """A line on what the experiment declares at this preset and was never started, if there is any.

    >>> from bgd.report.summary import compare
    >>> missing_rows(compare([]))
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
    names = [
        row if len(columns) == len(declared[row]) else f"{row} ({', '.join(columns)})"
        for row, columns in missing.items()
    ]
    return [f"Declared and not run: {'; '.join(names)}"] if names else []


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
            title = first.config.title.removesuffix(f"seed {first.config.seed}")
            lines.append(f"{title}{len(numbers)} runs (seeds {formatting.seeds(numbers)}), in the first: {text}")
    return lines
