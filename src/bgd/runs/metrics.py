r"""Metrics of continual learning, from one matrix of accuracies. All formulae of the package are here.

:math:`R_{i,j}` is the test accuracy on task j after stage i (in a discrete stream: after task i was learnt), for
i, j = 0..T-1. Accuracies lie in [0, 1]; a task that was not tested is NaN, and a metric that depends on it is an
error. For Lopez-Paz & Ranzato's measures (GEM, 2017) stages and tasks are the same in number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from bgd.errors import BGDError


class MetricError(BGDError, ValueError):
    """Accuracies from which the requested metric cannot be computed."""


def accuracy(scores: Tensor, y: Tensor) -> float:
    r"""The share of samples whose highest score is the right one: :math:`\frac1n \sum_b [\arg\max_o s_{b,o} = y_b]`.

    >>> import torch
    >>> accuracy(torch.tensor([[0.1, 0.9], [0.8, 0.2]]), torch.tensor([1, 1]))
    0.5
    """
    if len(scores) != len(y) or not len(y):
        raise MetricError(f"{len(scores)} predictions for {len(y)} labels: give as many, and at least one")
    return (scores.argmax(1) == y).double().mean().item()


def average_accuracy(R: ArrayLike, stage: int = -1) -> float:
    r"""Over all tasks after one stage: :math:`\frac1T \sum_{j} R_{i,j}`, by default after the last.

    >>> average_accuracy([[0.9, 0.1], [0.7, 0.8]])
    0.75
    """
    return _mean(_matrix(R)[stage], "average_accuracy")


def average_accuracy_seen(R: ArrayLike) -> NDArray[np.float64]:
    r"""After each stage, over the tasks seen so far: :math:`A_i = \frac1{i+1} \sum_{j \le i} R_{i,j}`.

    This is the curve of the paper's figures of accuracy against the number of tasks.

    >>> average_accuracy_seen([[0.9, 0.1], [0.7, 0.8]]).tolist()
    [0.9, 0.75]
    """
    R = _square(R)
    return np.array([_mean(row[: i + 1], "average_accuracy_seen") for i, row in enumerate(R)])


def forgetting(R: ArrayLike) -> float:
    r"""The mean drop of the tasks before the last from their best accuracy (Chaudhry et al., 2018): 0 is none.

    .. math:: F = \frac{1}{T-1} \sum_{j < T-1} \Big( \max_{i < T-1} R_{i,j} - R_{T-1,j} \Big)

    The maximum runs over all stages before the last; negative where a task is at its best in the end.

    >>> round(forgetting([[0.9, 0.1], [0.7, 0.8]]), 6)
    0.2
    """
    R = _square(R, least=2)
    best = np.array([_finite(column[:-1], "forgetting").max() for column in R[:, :-1].T])
    return _mean(best - R[-1, :-1], "forgetting")


def backward_transfer(R: ArrayLike) -> float:
    r"""What later tasks did to earlier ones (GEM): negative is forgetting.

    .. math:: B = \frac{1}{T-1} \sum_{j < T-1} \left( R_{T-1,j} - R_{j,j} \right)

    >>> round(backward_transfer([[0.9, 0.1], [0.7, 0.8]]), 6)
    -0.2
    """
    R = _square(R, least=2)
    return _mean(R[-1, :-1] - np.diag(R)[:-1], "backward_transfer")


def forward_transfer(R: ArrayLike, untrained: ArrayLike) -> float:
    r"""What earlier tasks did for later ones before these were seen (GEM).

    .. math:: W = \frac{1}{T-1} \sum_{j > 0} \left( R_{j-1,j} - b_j \right)

    Args:
        R: accuracies.
        untrained: b, the accuracy on each task before any training.

    >>> round(forward_transfer([[0.9, 0.3], [0.7, 0.8]], untrained=[0.1, 0.1]), 6)
    0.2
    """
    R = _square(R, least=2)
    b = np.asarray(untrained, dtype=np.float64)
    if b.shape != (len(R),):
        raise MetricError(f"untrained has shape {b.shape}: give one accuracy for each of {len(R)} tasks")
    return _mean(np.diag(R, k=1) - b[1:], "forward_transfer")


def anytime_accuracy(R: ArrayLike, seen: Sequence[int] | None = None) -> float:
    r"""The average accuracy at any time: over E evaluations on a fixed schedule, and the tasks seen by then.

    .. math:: \bar A = \frac1E \sum_{e} \frac{1}{|S_e|} \sum_{j \in S_e} R_{e,j}

    Args:
        R: accuracies (E, T), a row for each evaluation; see ``evaluation_schedule``.
        seen: how many tasks had begun at each evaluation (in a fading stream: their N / T iterations, though a few of
            their samples come earlier); None counts all tasks at all times.

    >>> anytime_accuracy([[0.9, 0.1], [0.8, 0.6]], seen=[1, 2])
    0.8
    """
    R = _matrix(R)
    counts = [R.shape[1]] * len(R) if seen is None else list(seen)
    if len(counts) != len(R) or not all(1 <= count <= R.shape[1] for count in counts):
        raise MetricError(
            f"seen={counts} for {len(R)} evaluations of {R.shape[1]} tasks: give one count each, 1 to {R.shape[1]}"
        )
    rows = [_mean(row[:count], "anytime_accuracy") for row, count in zip(R, counts, strict=True)]
    return float(np.mean(rows))


def evaluation_schedule(iterations: int, evaluations: int) -> tuple[int, ...]:
    r"""Iterations after which to evaluate: :math:`\lfloor (e+1) N / E \rfloor`, evenly spaced, the end included.

    >>> evaluation_schedule(iterations=100, evaluations=4)
    (25, 50, 75, 100)
    """
    if not 1 <= evaluations <= iterations:
        raise MetricError(f"{evaluations} evaluations in {iterations} iterations: give 1 to {iterations}")
    return tuple(iterations * (e + 1) // evaluations for e in range(evaluations))


def _matrix(R: ArrayLike) -> NDArray[np.float64]:
    matrix = np.asarray(R, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size:
        raise MetricError(f"R has shape {matrix.shape}: give a matrix, a row for each stage, a column for each task")
    if (matrix < 0).any() or (matrix > 1).any():
        raise MetricError(f"R runs from {np.nanmin(matrix)} to {np.nanmax(matrix)}: give accuracies from 0 to 1")
    return matrix


def _square(R: ArrayLike, least: int = 1) -> NDArray[np.float64]:
    matrix = _matrix(R)
    if matrix.shape[0] != matrix.shape[1] or len(matrix) < least:
        raise MetricError(
            f"R has shape {matrix.shape}: give as many stages as tasks" + (f", at least {least}" if least > 1 else "")
        )
    return matrix


def _finite(values: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
    if not np.isfinite(values).all():
        raise MetricError(f"{metric} depends on accuracies that were not measured (NaN): evaluate those tasks too")
    return values


def _mean(values: NDArray[np.float64], metric: str) -> float:
    return float(_finite(values, metric).mean())
