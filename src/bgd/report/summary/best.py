"""Which entries are the best of a column: decided on the seeds that two entries have in common, at least two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from bgd.report.summary.types import Entry
from bgd.runs.result import RunResult


def best_of(entries: Iterable[Entry], value: Callable[[RunResult], float]) -> list[Entry]:
    """The entries that no other beats in the value of their runs; none of a single one. Upper bounds do not count.

    On one seed none is the best: nobody knows what another seed would say.

    >>> best_of([], lambda run: run.average_accuracy)
    []
    """
    rivals = [entry for entry in entries if entry.runs and not entry.upper_bound]
    if len(rivals) < 2:
        return []
    return [
        entry for entry in rivals if all(_is_as_good(entry, other, value) for other in rivals if other is not entry)
    ]


def _is_as_good(entry: Entry, other: Entry, value: Callable[[RunResult], float]) -> bool:
    """On common seeds, since one seed can be easier than another; False with fewer than two, or where ours diverged."""
    ours, theirs = ({run.config.seed: value(run) for run in one.runs} for one in (entry, other))
    common = [seed for seed in ours if seed in theirs]
    total, rival_total = (sum(values[seed] for seed in common) for values in (ours, theirs))
    return len(common) > 1 and math.isfinite(total) and not total < rival_total
