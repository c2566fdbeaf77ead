"""Which figures a comparison has. Each kind is a file beside this one: when it applies, its caption, its drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from bgd.experiments.declaration import Figure
from bgd.report.figures.accuracy_at_end import plot_accuracy_at_end
from bgd.report.figures.accuracy_by_task import plot_accuracy_by_task
from bgd.report.figures.by_setting import plot_by_setting
from bgd.report.figures.collapses import plot_collapses
from bgd.report.figures.each_task import plot_each_task
from bgd.report.figures.learning_curves import plot_learning_curves
from bgd.report.figures.matrix import plot_matrix
from bgd.report.figures.schedule import plot_schedules
from bgd.report.figures.stds import plot_stds
from bgd.report.figures.types import Plot
from bgd.report.summary.types import Comparison

OVERVIEW: Final = (plot_collapses, plot_by_setting, plot_accuracy_at_end)
"""Drawn for every comparison that they apply to."""

KINDS: Final[dict[Figure, Callable[[Comparison], Iterator[Plot]]]] = {
    "accuracy-by-task": plot_accuracy_by_task,
    "each-task": plot_each_task,
    "schedule": plot_schedules,
    "stds": plot_stds,
    "learning-curves": plot_learning_curves,
    "matrix": plot_matrix,
}
"""By the names that an experiment declares."""


def draw_plots(comparison: Comparison) -> list[Plot]:
    """All figures that the results allow, those of the paper's kind first.

    The declaration's ``figures`` select which are drawn beside the overview, in its order; without a declaration, all.

    >>> from bgd.report.summary import compare
    >>> draw_plots(compare([]))
    []
    """
    experiment = comparison.experiment
    selected = experiment.figures if experiment and experiment.figures else tuple(KINDS)
    drawers = [*OVERVIEW, *(KINDS[kind] for kind in selected)]
    return [plot for draw in drawers for plot in draw(comparison)]
