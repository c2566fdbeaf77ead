"""Two folders of results beside each other: what differs, and whether by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bgd.report import formatting
from bgd.report.files import ReportError
from bgd.report.statistics import Difference, Summary, beyond_chance, difference
from bgd.report.summary.types import Comparison
from bgd.report.tables.types import Cell, Table


@dataclass(frozen=True)
class Pair:
    """One method in one setting, in both.

    Attributes:
        row: label of the method.
        column: label of the setting.
        a: in the first, in percent; None if absent.
        b: in the second.
    """

    row: str
    column: str
    a: Summary | None
    b: Summary | None

    @property
    def difference(self) -> Difference | None:
        """The second minus the first."""
        return difference(self.b, self.a) if self.a and self.b else None

    @property
    def verdict(self) -> str:
        """Whether the difference is more than chance, see :func:`beyond_chance`."""
        gap = self.difference
        if gap is None or self.a is None or self.b is None:
            return "only in A" if self.a else "only in B" if self.b else "no result"
        if gap.standard_error is None:
            return "one seed each: unknown" if gap.value else "the same"
        if not beyond_chance(self.b, self.a):
            return "no difference beyond chance"
        return "B is higher" if gap.value > 0 else "B is lower"


def pair_up(a: Sequence[Comparison], b: Sequence[Comparison]) -> list[tuple[Comparison, Comparison]]:
    """Which comparison belongs beside which: the only two, or those of one experiment, preset and own values.

    Where each side has one comparison of an experiment, these are a pair whatever their scale: see :func:`title_of`.

    Raises:
        ReportError: where none match.
    """
    if len(a) == len(b) == 1:
        return [(a[0], b[0])]
    pairs = []
    for one in a:
        same = [two for two in b if two.name == one.name]
        exact = [two for two in same if (two.preset, two.overrides) == (one.preset, one.overrides)]
        if len(same) == 1 == sum(other.name == one.name for other in a):
            exact = same
        if exact:
            pairs.append((one, exact[0]))
    if not pairs:
        names = [", ".join(sorted({c.name or "unnamed" for c in side})) for side in (a, b)]
        raise ReportError(f"nothing in common: A holds {names[0]}, B holds {names[1]}: name two folders to compare")
    return pairs


def title_of(a: Comparison, b: Comparison) -> str:
    """Of the two, with what differs: the experiment, the scale, or the user's own values."""
    names = [a.title] if a.title == b.title else [a.title, b.title]
    if (a.preset, a.overrides) == (b.preset, b.overrides):
        return " / ".join(names)
    scales = [", ".join(filter(None, (one.preset, *one.overrides))) or "no preset" for one in (a, b)]
    return f"{' / '.join(names)} (A: {scales[0]}; B: {scales[1]})"


def side_by_side(a: Comparison, b: Comparison) -> list[Pair]:
    """Every method and setting of either, in the order of the first."""
    keys = dict.fromkeys([*a.entries, *b.entries])
    found = []
    for row, column in keys:
        one, two = a.entries.get((row, column)), b.entries.get((row, column))
        found.append(Pair(row, column, one.ours if one else None, two.ours if two else None))
    return found


def to_table(pairs: Sequence[Pair], title: str) -> Table:
    """For the terminal or a file.

    >>> pair = Pair("BGD", "accuracy", Summary(90, 1, 4), Summary(94, 1, 4))
    >>> [cell.text for cell in to_table([pair], "t").rows[0]]
    ['BGD', '90.00 ± 1.00 (4)', '94.00 ± 1.00 (4)', '+4.00 (SE 0.71)', 'B is higher']
    """
    several = len({pair.column for pair in pairs}) > 1
    headers = ["method"] + ["setting"] * several + ["A, % (seeds)", "B, % (seeds)", "B - A", "verdict"]
    tones = {"B is higher": "green", "B is lower": "yellow"}
    rows = []
    for pair in pairs:
        gap = pair.difference
        values = [f"{formatting.value(one)} ({one.n})" if one else formatting.NONE for one in (pair.a, pair.b)]
        cells = [pair.row, *[pair.column] * several, *values, formatting.change(gap) if gap else formatting.NONE]
        rows.append((*map(Cell, cells), Cell(pair.verdict, tone=tones.get(pair.verdict, ""))))
    return Table(title, tuple(headers), tuple(rows))
