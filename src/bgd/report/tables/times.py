"""Time of training, as a multiple of one row's."""

from __future__ import annotations

from bgd.report import formatting
from bgd.report.summary.types import Comparison
from bgd.report.tables.types import Cell, Table


def times(comparison: Comparison) -> Table | None:
    """Time of training, and how many times that of the row that the declaration names.

    Seconds for an epoch, as in the paper; where a stream has no epochs, milliseconds for an iteration.
    """
    base = comparison.experiment.times_of if comparison.experiment else None
    done = [entry for entry in comparison.entries.values() if entry.step_seconds]
    if base is None or not done:
        return None
    epochs = all(entry.epoch_seconds for entry in done)
    several = len(comparison.columns) > 1
    paper = any(e.reported and e.reported.seconds for e in comparison.entries.values())
    rows = []
    for column in comparison.columns:
        entries = {entry.row: entry for entry in comparison.column(column)}
        ours = {row: e.epoch_seconds if epochs else 1e3 * (e.step_seconds or 0) for row, e in entries.items()}
        reported = {row: e.reported.seconds for row, e in entries.items() if e.reported}
        for row, entry in entries.items():
            cells = [row] + [column] * several + [formatting.value(entry.ours)]
            cells += [formatting.value(entry.paper)] * paper
            cells += _time_and_ratio(ours[row], ours.get(base))
            cells += _time_and_ratio(reported.get(row), reported.get(base)) if paper else []
            rows.append(tuple(map(Cell, cells)))
    headers = ["method"] + ["setting"] * several + ["accuracy, %"] + ["paper's"] * paper
    headers += ["s an epoch" if epochs else "ms a step", f"x {base}"] + ["paper's s", f"paper's x {base}"] * paper
    return Table(f"Time of a training {'epoch' if epochs else 'step'}", tuple(headers), tuple(rows))


def _time_and_ratio(time: float | None, base: float | None) -> list[str]:
    ratio = f"{time / base:.1f}" if time and base else formatting.NONE
    return [f"{time:.3g}" if time else formatting.NONE, ratio]
