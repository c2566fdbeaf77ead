"""Accuracy and loss over time, on test and on training images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from bgd.report.figures.alarms import draw_with_alarms, find_marks
from bgd.report.figures.labels import column_file_suffix, column_suffix, describe_seeds, looks_of, row_label
from bgd.report.figures.lines import Series, describe_ends, draw_lines, make_series
from bgd.report.figures.style import Look
from bgd.report.figures.types import Plot
from bgd.report.summary.types import Comparison
from bgd.runs.result import Evaluation, Fit

LOSS_LIMIT = 3.0
"""In units of the largest loss at the start: where the axis of training losses ends, if one exceeds it."""

TASKS = "Test accuracy averaged over all tasks, also those still to come, against the number of batches."
WINDOWS = "Accuracy of predictions made before their examples were learnt, each point over the batches since the last."


@dataclass
class _Curves:
    """The curves of one column.

    Attributes:
        accuracy: on test images, and on training images where these were evaluated.
        loss: likewise; empty unless training images were evaluated.
        training_loss: of the batches.
        looks: of all labels.
    """

    looks: dict[str, Look]
    accuracy: dict[str, Series] = field(default_factory=dict)
    loss: dict[str, Series] = field(default_factory=dict)
    training_loss: dict[str, Series] = field(default_factory=dict)


def plot_learning_curves(comparison: Comparison) -> Iterator[Plot]:
    """Up to three figures for each column: accuracy, loss on test and training images, loss of the batches."""
    experiment = comparison.experiment
    first = experiment is not None and experiment.figures[:1] == ("learning-curves",)
    for column in comparison.columns:
        curves = _collect(comparison, column)
        seeds = describe_seeds(comparison.column(column))
        suffix, file_suffix = column_suffix(comparison, column), column_file_suffix(comparison, column)
        if any(run.prequential for entry in comparison.column(column) for run in entry.runs):
            if curves.accuracy:
                yield _plot_windows(comparison, column, curves, seeds)
        elif curves.accuracy:
            title = ("Accuracy over time" if curves.loss else "Test accuracy over time") + suffix
            yield Plot(
                f"learning-curves{file_suffix}",
                title,
                TASKS + " Beside it the accuracy on training images." * bool(curves.loss) + seeds,
                describe_ends(curves.accuracy),
                partial(draw_lines, curves.accuracy, curves.looks, title=title, xlabel="iteration", whole_x=True),
                secondary=not first,
            )
        if curves.loss:
            title = "Loss over time" + suffix
            yield Plot(
                f"learning-curves-loss{file_suffix}",
                title,
                "Mean cross-entropy of the mean network on test and training images." + seeds,
                describe_ends(curves.loss),
                partial(
                    draw_lines, curves.loss, curves.looks, title=title, xlabel="iteration", ylabel="loss", whole_x=True
                ),
            )
        if curves.training_loss:
            yield _plot_training_loss(curves, suffix, file_suffix, seeds)


def _plot_windows(comparison: Comparison, column: str, curves: _Curves, seeds: str) -> Plot:
    """Accuracy of predictions before learning, with the alarms of the best learner."""
    marks = find_marks(comparison, column)
    title = "Accuracy over time" + column_suffix(comparison, column)
    return Plot(
        f"learning-curves{column_file_suffix(comparison, column)}",
        title,
        WINDOWS + (marks.describe() if marks else "") + seeds,
        describe_ends(curves.accuracy),
        partial(draw_with_alarms, curves.accuracy, curves.looks, marks.iterations if marks else (), title),
    )


def _plot_training_loss(curves: _Curves, suffix: str, file_suffix: str, seeds: str) -> Plot:
    title = "Training loss over time" + suffix
    loss = curves.training_loss
    absent = [label for label, curve in loss.items() if not np.isfinite(curve.mean).any()]
    limit = LOSS_LIMIT * max((c.mean[0] for c in loss.values() if np.isfinite(c.mean[0])), default=math.inf)
    beyond = [label for label, curve in loss.items() if (curve.mean > limit).any()]
    return Plot(
        f"training-loss{file_suffix}",
        title,
        "Mean cross-entropy of the training batches since the point before, before each update."
        + (f" Nowhere finite, and not drawn: {'; '.join(absent)}." if absent else "")
        + (f" Beyond the axis at times: {'; '.join(beyond)}." if beyond else "")
        + seeds,
        describe_ends(loss),
        partial(
            draw_lines,
            loss,
            curves.looks,
            title=title,
            xlabel="iteration",
            ylabel="training loss",
            whole_x=True,
            top=limit if beyond else None,
        ),
        secondary=True,
    )


def _collect(comparison: Comparison, column: str) -> _Curves:
    curves = _Curves(dict(looks_of(comparison)))
    for entry in comparison.column(column):
        label, runs = row_label(comparison, entry.row), entry.runs
        curves.training_loss |= _curve(label, [[(p.iteration, p.loss) for p in run.curve] for run in runs])
        if not any(run.fits for run in runs):
            curves.accuracy |= _curve(label, [_accuracies(run.evaluations) for run in runs])
            continue
        test, train = f"{label}, test", f"{label}, training"
        curves.looks |= {test: curves.looks[label], train: curves.looks[label].secondary}
        curves.accuracy |= _curve(test, [_accuracies(run.evaluations) for run in runs])
        curves.accuracy |= _curve(train, [_accuracies(run.fits) for run in runs])
        curves.loss |= _curve(test, [_losses(run.evaluations) for run in runs])
        curves.loss |= _curve(train, [_losses(run.fits) for run in runs])
    return curves


def _accuracies(points: Sequence[Evaluation | Fit]) -> list[tuple[int, float]]:
    return [(point.iteration, 100 * float(np.mean(point.accuracy))) for point in points]


def _losses(points: Sequence[Evaluation | Fit]) -> list[tuple[int, float]]:
    return [(point.iteration, float(np.mean(point.loss))) for point in points]


def _curve(label: str, runs: list[list[tuple[int, float]]]) -> dict[str, Series]:
    """Over the runs that were measured at the same iterations as the first; empty for fewer than two points."""
    iterations = [[x for x, _ in points] for points in runs]
    same = [points for points, xs in zip(runs, iterations, strict=True) if xs == iterations[0]]
    if not same or len(iterations[0]) < 2:
        return {}
    return {label: make_series(iterations[0], [[y for _, y in points] for points in same])}
