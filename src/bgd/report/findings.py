"""What these runs found, in a sentence: made from the numbers, with their uncertainty, and never the paper's claim."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from bgd.report import formatting
from bgd.report.statistics import beyond_chance
from bgd.report.summary.scale import Scale
from bgd.report.summary.types import Comparison, Entry

MOST_SETTINGS = 3
"""More settings than this are counted in the sentence, rather than listed."""

EQUAL = 0.005
"""Percent: means that differ by less look the same in print."""


def headline(comparison: Comparison) -> str:
    """One sentence: which method has the highest accuracy in which setting, by how much, and whether that is chance.

    >>> from bgd.report.summary import compare
    >>> headline(compare([]))
    'No run has finished yet.'
    """
    leads = {column: ranked for column in comparison.columns if len(ranked := _ranked(comparison, column)) > 1}
    entries = [entry for entry in comparison.entries.values() if entry.ours]
    if not entries:
        return "No run has finished yet."
    if all(entry.scale is Scale.SMOKE for entry in entries):
        return (
            f"A smoke test: {formatting.count(len(comparison.runs), 'run')} too short to compare methods by, "
            "or on other data; they show that the code runs, and what a step costs."
        )
    if comparison.experiment and comparison.experiment.counts_collapses:
        return _count_collapses(comparison)
    if not leads:
        return f"{'; '.join(_describe(entry) for entry in entries[:MOST_SETTINGS])}: there is nothing to compare."
    if len(leads) > MOST_SETTINGS:
        text = _count_leads(list(leads.values()))
    else:
        several = len(comparison.columns) > 1
        text = "; ".join(_lead(ranked, column if several else "") for column, ranked in leads.items())
    return f"{_seeds([entry for ranked in leads.values() for entry in ranked])}{text}{_failures(comparison)}."


def compare_highlighted(comparison: Comparison) -> list[str]:
    """A line for each setting in which the emphasised method is not the highest: how far below it is.

    >>> from bgd.report.summary import compare
    >>> compare_highlighted(compare([]))
    []
    """
    lines = []
    for column in comparison.columns:
        ranked = _ranked(comparison, column)
        declared = comparison.experiment.highlight if comparison.experiment else None
        own = comparison.entries.get((declared or "", column))
        if own is None or own.ours is None or len(ranked) < 2 or ranked[0] is own or not math.isfinite(own.ours.mean):
            continue
        prefix = f"In “{column}”: " if len(comparison.columns) > 1 else ""
        lines.append(f"{prefix}{_describe(own)}, {_gap(ranked[0], own, 'below')}.")
    return [] if all(e.scale is Scale.SMOKE for e in comparison.entries.values()) else lines


def _count_collapses(comparison: Comparison) -> str:
    """How many runs of each method collapsed, setting by setting, those of one count together."""
    parts = []
    for column in comparison.columns:
        by_count: dict[tuple[int, int], list[str]] = {}
        for entry in comparison.column(column):
            if entry.runs:
                by_count.setdefault((entry.warned, len(entry.runs)), []).append(entry.row)
        counts = sorted(by_count.items(), key=lambda item: -item[0][0] / item[0][1])
        text = ", ".join(f"{warned} of {n} ({'; '.join(rows)})" for (warned, n), rows in counts)
        parts += [f"{column}: {text}"] * bool(text)
    return f"Collapsed runs: {' – '.join(parts)}."


def _ranked(comparison: Comparison, column: str) -> list[Entry]:
    """The methods of a column, highest mean first; without upper bounds and what diverged."""
    rivals = [e for e in comparison.column(column) if e.ours and math.isfinite(e.ours.mean) and not e.upper_bound]
    return sorted(rivals, key=lambda e: -e.ours.mean if e.ours else 0.0)


def _lead(ranked: Sequence[Entry], column: str) -> str:
    where = f" in “{column}”" if column else ""
    level = [
        entry for entry in ranked if entry.ours and ranked[0].ours and ranked[0].ours.mean - entry.ours.mean < EQUAL
    ]
    if len(level) > 1:
        return f"{' and '.join(_describe(entry) for entry in level[:MOST_SETTINGS])} are level at the top{where}"
    return f"{_describe(ranked[0])} is highest{where}, {_gap(ranked[0], ranked[1], 'above')}"


def _gap(higher: Entry, lower: Entry, word: str) -> str:
    """How far two are apart, and whether by more than chance."""
    assert higher.ours is not None
    assert lower.ours is not None
    other = lower if word == "above" else higher
    points = f"{higher.ours.mean - lower.ours.mean:.2f} points {word} {_describe(other)}"
    if min(len(higher.runs), len(lower.runs)) < 2:
        return points if len(higher.runs) == len(lower.runs) else f"{points}, too few seeds to exclude chance"
    return f"{points}, {'beyond' if beyond_chance(higher.ours, lower.ours) else 'within'} chance"


def _describe(entry: Entry) -> str:
    if entry.ours is not None and not math.isfinite(entry.ours.mean):
        return f"{entry.row} (diverged)"
    return f"{entry.row} ({formatting.value(entry.ours)} %)"


def _count_leads(leads: Sequence[Sequence[Entry]]) -> str:
    highest = Counter(ranked[0].row for ranked in leads)
    clear = sum(_is_clear(ranked) for ranked in leads)
    names = ", ".join(f"{row} in {times}" for row, times in highest.most_common(MOST_SETTINGS))
    return f"of {len(leads)} settings, the highest is {names}; beyond chance in {clear}"


def _is_clear(ranked: Sequence[Entry]) -> bool:
    first, second = ranked[0], ranked[1]
    if first.ours is None or second.ours is None or min(len(first.runs), len(second.runs)) < 2:
        return False
    return beyond_chance(first.ours, second.ours)


def _seeds(entries: Sequence[Entry]) -> str:
    counts = sorted({len(entry.runs) for entry in entries})
    if len(counts) > 1:
        return f"Over {counts[0]} to {counts[-1]} seeds, "
    return f"Over {counts[0]} seeds, " if counts[0] > 1 else "On one seed, which cannot exclude chance, "


def _failures(comparison: Comparison) -> str:
    warned = sum(entry.warned for entry in comparison.entries.values())
    failed = sum(entry.failed for entry in comparison.entries.values())
    facts = [f"{warned} of {len(comparison.runs)} runs have a warning"] * bool(warned)
    facts += [f"{failed} failed"] * bool(failed)
    return f"; {' and '.join(facts)}" if facts else ""
