"""What became of the values that the paper prints: a line for each experiment that repeats one of its items."""

from __future__ import annotations

from collections.abc import Sequence

from bgd.report import formatting
from bgd.report.tables.types import Cell, Table
from bgd.report.verdicts import Item, Outcome

SHORT = {
    Outcome.AS_STATED: "as stated",
    Outcome.WITH_DEVIATION: "with a named deviation",
    Outcome.OPEN: "open",
    Outcome.SMOKE: "smoke test only",
    Outcome.NOT_RUN: "not run",
}


def verdict_table(items: Sequence[Item]) -> Table:
    """Of each item: its values, the scale of our runs, and how many values had which outcome.

    >>> verdict_table([]).headers[:4]
    ('experiment', 'of the paper', 'scale', 'values')
    """
    headers = ("experiment", "of the paper", "scale", "values", *SHORT.values())
    return Table("Verdict", headers, tuple(_row(item) for item in items))


def _row(item: Item) -> tuple[Cell, ...]:
    counts = [item.count(outcome) for outcome in SHORT]
    return (
        Cell(item.experiment.title),
        Cell(item.experiment.source),
        Cell(", ".join(map(str, item.scales)) or formatting.NONE),
        Cell(_describe_values(item)),
        *(Cell(str(count) if count else formatting.NONE) for count in counts),
    )


def _describe_values(item: Item) -> str:
    """How many; where there are none, whether those above are meant or the paper prints none, as beside a picture."""
    if item.cells:
        return str(len(item.cells))
    printed = any(one.mean is not None for columns in item.experiment.paper.values() for one in columns.values())
    return "those above" if printed else "no accuracies"
