"""What became of each value that the paper prints: generated from the results, at the scale that they have.

A *cell* is one value of the paper. The same value in two of its tables is one cell, and a row named ``BGD, std capped``
is a variant of the row ``BGD``: it stands for that row's cell with a deviation that has its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bgd.experiments import EXPERIMENTS
from bgd.experiments.declaration import Experiment, Reported
from bgd.report import formatting
from bgd.report.statistics import Summary, Verdict, verdict
from bgd.report.summary.paper import differences, summary_of
from bgd.report.summary.scale import Scale
from bgd.report.summary.types import Comparison, Entry

Key = tuple[str, ...]


class Outcome(StrEnum):
    """Of a cell."""

    AS_STATED = "agrees as stated"
    WITH_DEVIATION = "agrees with a named deviation"
    OPEN = "open"
    SMOKE = "smoke test only: not compared"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Evidence:
    """Runs beside a cell.

    Attributes:
        entry: the runs.
        deviation: how they deviate from what the paper states; empty where they do not.
    """

    entry: Entry
    deviation: str

    def verdict(self, paper: Summary) -> Verdict:
        """Whether they agree with the paper's value."""
        return verdict(self.entry.ours, paper)


@dataclass(frozen=True)
class PaperCell:
    """One value of the paper, and all that was run to measure it.

    Attributes:
        row: of the paper.
        column: likewise.
        paper: the value.
        evidence: of all comparisons.
    """

    row: str
    column: str
    paper: Summary
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def as_stated(self) -> Evidence | None:
        """The runs of the paper's own settings and scale; of several the one with most seeds."""
        exact = [one for one in self._compared if not one.deviation]
        return max(exact, key=lambda one: len(one.entry.runs), default=None)

    @property
    def deviating(self) -> list[Evidence]:
        """Runs with other settings; shortened ones only where there are none of the paper's length.

        A candidate that has the very settings of those as stated, on fewer seeds, is no deviation.
        """
        found, exact = [one for one in self._compared if one.deviation], self.as_stated
        if exact is None:
            return found
        return [
            one
            for one in found
            if one.entry.scale is not Scale.SHORTENED
            and differences(one.entry.runs[0].config, exact.entry.runs[0].config)
        ]

    @property
    def agreeing_deviation(self) -> Evidence | None:
        """The deviation with most seeds that agrees."""
        found = [one for one in self.deviating if one.verdict(self.paper) is Verdict.AGREES]
        return max(found, key=lambda one: len(one.entry.runs), default=None)

    @property
    def deviations(self) -> int:
        """How many were tried: the more, the likelier is one that agrees by chance."""
        return len({one.deviation for one in self.deviating})

    @property
    def outcome(self) -> Outcome:
        """What became of the value."""
        exact = self.as_stated
        if exact is not None and exact.verdict(self.paper) is Verdict.AGREES:
            return Outcome.AS_STATED
        if self.agreeing_deviation is not None:
            return Outcome.WITH_DEVIATION
        if self._compared:
            return Outcome.OPEN
        return Outcome.SMOKE if any(one.entry.ours for one in self.evidence) else Outcome.NOT_RUN

    @property
    def scale(self) -> Scale | None:
        """The largest at which it was run."""
        scales = [one.entry.scale for one in self.evidence if one.entry.scale]
        return min(scales, key=list(Scale).index, default=None)

    @property
    def _compared(self) -> list[Evidence]:
        return [one for one in self.evidence if one.entry.scale is not Scale.SMOKE and one.entry.ours]


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper.

    Attributes:
        experiment: that repeats it.
        cells: its values, without those that an item before it has; none where the paper prints a picture alone.
        scales: at which its cells were run, the largest first.
    """

    experiment: Experiment
    cells: tuple[PaperCell, ...]
    scales: tuple[Scale, ...]

    def count(self, outcome: Outcome) -> int:
        """How many cells have an outcome."""
        return sum(cell.outcome is outcome for cell in self.cells)


def judge(comparisons: Sequence[Comparison]) -> list[Item]:
    """One item for each experiment of these comparisons that repeats something of the paper.

    >>> judge([])
    []
    """
    loaded = [c for c in comparisons if c.experiment and c.experiment.source]
    names = dict.fromkeys(c.name for c in loaded)
    experiments = {name: _declared(next(c for c in loaded if c.name == name)) for name in names}
    cells: dict[Key, PaperCell] = {}
    owners: dict[Key, str] = {}
    for name, experiment in experiments.items():
        for row, column, reported in _values(experiment):
            key = _key(experiment, row, column, reported)
            if (paper := summary_of(reported)) is not None and key not in cells:
                cells[key], owners[key] = PaperCell(row, column, paper), name
    for comparison in loaded:
        _collect(comparison, experiments[comparison.name], cells)
    return [
        Item(experiment, tuple(cells[key] for key in cells if owners[key] == name), _scales(name, loaded))
        for name, experiment in experiments.items()
    ]


def count_outcomes(items: Sequence[Item]) -> dict[Outcome, int]:
    """Distinct cells by their outcome, over all items.

    >>> count_outcomes([])[Outcome.OPEN]
    0
    """
    return {outcome: sum(item.count(outcome) for item in items) for outcome in Outcome}


def summarise_verdicts(comparisons: Sequence[Comparison], items: Sequence[Item]) -> str:
    """One sentence on all runs, and on what became of the paper's values.

    >>> summarise_verdicts([], [])
    'No runs, and no experiments.'
    """
    runs = sum(len(one.runs) for one in comparisons)
    experiments = len({one.name for one in comparisons})
    if not comparisons:
        return "No runs, and no experiments."
    text = f"{formatting.count(runs, 'run')} of {formatting.count(experiments, 'experiment')}"
    counts = count_outcomes(items)
    total = sum(counts.values())
    if not total:
        return f"{text}."
    return (
        f"{text}: of {total} values that the paper prints, {counts[Outcome.AS_STATED]} agree as stated, "
        f"{counts[Outcome.WITH_DEVIATION]} with a named deviation, {counts[Outcome.OPEN]} are open, "
        f"{counts[Outcome.SMOKE]} have smoke tests only, and {counts[Outcome.NOT_RUN]} were not run."
    )


def describe_cell(cell: PaperCell) -> str:
    """A cell that does not agree as stated, in a line: the paper's value, ours, and the deviation that agrees.

    >>> describe_cell(PaperCell("BGD", "class", Summary(46.34, 2.36, 10)))
    'BGD, class: paper 46.34 ± 2.36; not run'
    """
    parts = [f"paper {formatting.value(cell.paper)}"]
    if (exact := cell.as_stated) is not None:
        parts.append(f"ours {_describe_runs(exact.entry)}")
    if cell.outcome is Outcome.WITH_DEVIATION and (one := cell.agreeing_deviation):
        tried = f", of {cell.deviations} tried" if cell.deviations > 1 else ""
        parts.append(f"with “{one.deviation}” {_describe_runs(one.entry)}{tried}")
    elif cell.outcome in (Outcome.NOT_RUN, Outcome.SMOKE):
        parts.append(str(cell.outcome))
    elif cell.deviations:
        parts.append(f"{formatting.count(cell.deviations, 'deviation')} tried, none agrees")
    return f"{cell.row}, {cell.column}: {'; '.join(parts)}"


def _describe_runs(entry: Entry) -> str:
    return f"{formatting.value(entry.ours)} ({formatting.count(len(entry.runs), 'seed')})"


def _declared(comparison: Comparison) -> Experiment:
    assert comparison.experiment is not None
    return EXPERIMENTS.get(comparison.name, comparison.experiment)


def _values(experiment: Experiment) -> Iterator[tuple[str, str, Reported]]:
    for row, columns in experiment.paper.items():
        for column, reported in columns.items():
            yield row, column, reported


def _key(experiment: Experiment, row: str, column: str, reported: Reported) -> Key:
    """The same for the same value: of one row, with its spread, in whichever table."""
    if reported.spread is not None:
        return row, str(reported.mean), str(reported.spread)
    return experiment.name, row, column


def _collect(comparison: Comparison, declared: Experiment, cells: dict[Key, PaperCell]) -> None:
    """Add the runs of a comparison to the cells that they measure."""
    for entry in comparison.entries.values():
        row, _, variant = entry.row.partition(", ")
        base = entry.row if entry.row in declared.paper else row
        reported = declared.paper.get(base, {}).get(entry.column)
        cell = cells.get(_key(declared, base, entry.column, reported)) if reported else None
        if cell is None:
            continue
        named = [variant] if base != entry.row else []
        named += [entry.column] if declared.candidates else []
        cell.evidence.append(Evidence(entry, "; ".join((*named, *entry.deviations))))


def _scales(name: str, comparisons: Sequence[Comparison]) -> tuple[Scale, ...]:
    found = {entry.scale for c in comparisons if c.name == name for entry in c.entries.values()}
    return tuple(scale for scale in Scale if scale in found)
