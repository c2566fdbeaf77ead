"""Numbers as text: every format is defined in this file, so that all tables agree."""

from __future__ import annotations

import math
from typing import Any

from bgd.experiments.text import count as count
from bgd.experiments.text import duration as duration
from bgd.report.statistics import Difference, Summary

NONE = "–"
"""The text of an empty cell."""


def value(summary: Summary | None) -> str:
    """Mean and spread with the paper's two decimals.

    >>> value(Summary(46.336, 2.3561, 10))
    '46.34 ± 2.36'
    >>> value(Summary(98.26, None, 1)), value(None)
    ('98.26', '–')
    """
    if summary is None:
        return NONE
    if not math.isfinite(summary.mean):
        return "diverged"
    return f"{summary.mean:.2f}" + ("" if summary.spread is None else f" ± {summary.spread:.2f}")


def bound(text: str) -> str:
    """Text in which a number stays on one line with its spread, wherever else it may break.

    >>> bound("46.34 ± 2.36 (10 seeds)").replace(chr(0xA0), "_")
    '46.34_±_2.36 (10 seeds)'
    """
    return text.replace(" ± ", "\u00a0±\u00a0")


def change(difference: Difference) -> str:
    """A difference with its sign and standard error.

    >>> change(Difference(-2.0, 1.414)), change(Difference(0.5, None))
    ('-2.00 (SE 1.41)', '+0.50')
    """
    error = "" if difference.standard_error is None else f" (SE {difference.standard_error:.2f})"
    return f"{round(difference.value, 2) + 0.0:+.2f}{error}"  # + 0.0: no -0.00


def sentence(text: str) -> str:
    """Text that ends like a sentence.

    >>> sentence("seconds: does it run?"), sentence("one seed"), sentence("")
    ('seconds: does it run?', 'one seed.', '')
    """
    return text if not text or text[-1] in ".?!" else f"{text}."


def setting(value: Any) -> str:
    """The value of a setting.

    >>> setting(0.06), setting((400, 400)), setting(None), setting(True)
    ('0.06', '400, 400', 'none', 'yes')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(setting(item) for item in value) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def seeds(numbers: list[int]) -> str:
    """Seeds, with consecutive ones as a range.

    >>> seeds([2021, 2019, 2020, 7])
    '7, 2019–2021'
    """
    groups: list[list[int]] = []
    for n in sorted(set(numbers)):
        if groups and n == groups[-1][-1] + 1:
            groups[-1].append(n)
        else:
            groups.append([n])
    return ", ".join(
        str(g[0]) if len(g) == 1 else f"{g[0]}, {g[1]}" if len(g) == 2 else f"{g[0]}–{g[-1]}" for g in groups
    )


def seeds_sentence(numbers: list[int]) -> str:
    """Seeds as a sentence.

    >>> seeds_sentence([2019]), seeds_sentence([2019, 2020]), seeds_sentence([])
    ('Seed 2019.', 'Seeds 2019, 2020.', '')
    """
    return f"{'Seed' if len(set(numbers)) == 1 else 'Seeds'} {seeds(numbers)}." if numbers else ""
