"""Comparisons with their figures, and the names by which the parts of a report refer to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bgd.report.figures.cache import render
from bgd.report.figures.catalog import draw_plots
from bgd.report.figures.labels import file_name
from bgd.report.figures.types import Plot
from bgd.report.summary.types import Comparison


@dataclass(frozen=True)
class Section:
    """A comparison with its figures.

    Attributes:
        comparison: what is shown.
        plots: its figures.
        drawn: the figures as files of one format, by name; empty until they are needed.
    """

    comparison: Comparison
    plots: Sequence[Plot]
    drawn: Mapping[str, bytes]


def make_sections(comparisons: Iterable[Comparison], file_format: str, processes: int = 1) -> list[Section]:
    """Comparisons with all their figures drawn, or taken from the cache.

    Args:
        comparisons: in order.
        file_format: ``"svg"`` or ``"png"``; empty for no figures.
        processes: see :func:`bgd.report.figures.cache.render`.

    >>> make_sections([], "svg")
    []
    """
    plots = [(comparison, draw_plots(comparison) if file_format else []) for comparison in comparisons]
    drawn = iter(render([plot for _, own in plots for plot in own], file_format, processes))
    return [Section(comparison, own, {plot.name: next(drawn) for plot in own}) for comparison, own in plots]


def by_experiment(sections: Iterable[Section]) -> dict[str, list[Section]]:
    """Sections by the file name of their experiment, in order: a page each.

    >>> by_experiment([])
    {}
    """
    found: dict[str, list[Section]] = {}
    for section in sections:
        found.setdefault(file_name(section.comparison.name) if section.comparison.name else "runs", []).append(section)
    return found


def headings(comparisons: Sequence[Comparison]) -> list[str]:
    """A heading for each, all distinct: links refer to them.

    >>> headings([])
    []
    """
    titles = [comparison.title for comparison in comparisons]
    named = [
        f"{title} ({', '.join(filter(None, (comparison.preset, *comparison.overrides)))})"
        if titles.count(title) > 1
        else title
        for title, comparison in zip(titles, comparisons, strict=True)
    ]
    return [f"{name}, {named[:i].count(name) + 1}" if named.count(name) > 1 else name for i, name in enumerate(named)]
