"""Which tables a comparison has."""

from __future__ import annotations

from bgd.report.summary.types import Comparison
from bgd.report.tables.calibration import calibration
from bgd.report.tables.prequential import prequential
from bgd.report.tables.results import detail, overview
from bgd.report.tables.tasks import each_task
from bgd.report.tables.times import times
from bgd.report.tables.types import Table


def extra_tables(comparison: Comparison) -> list[Table]:
    """Those of prequential streams, and those that are declared: accuracy on each task, calibration, run times.

    >>> from bgd.report.summary import compare
    >>> extra_tables(compare([]))
    []
    """
    experiment, streams = comparison.experiment, prequential(comparison)
    if experiment is None:
        return [streams] if streams else []
    reported = any(cell.tasks for cells in experiment.paper.values() for cell in cells.values())
    with_tasks = reported or "each-task" in experiment.figures
    found = [each_task(comparison, column) for column in comparison.columns if with_tasks]
    return [table for table in (streams, *found, calibration(comparison), times(comparison)) if table is not None]


def all_tables(comparison: Comparison) -> list[Table]:
    """The overview where there are several columns, the details, and those that the experiment declares.

    >>> from bgd.report.summary import compare
    >>> [table.headers for table in all_tables(compare([]))]
    [('method', 'ours, %', 'seeds', 'time a run')]
    """
    return [overview(comparison)] * (len(comparison.columns) > 1) + [detail(comparison)] + extra_tables(comparison)
