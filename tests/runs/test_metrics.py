import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bgd.runs import metrics
from bgd.runs.metrics import MetricError

# Three tasks, computed by hand below.
R = [
    [0.90, 0.20, 0.10],
    [0.60, 0.80, 0.30],
    [0.50, 0.85, 0.70],
]
UNTRAINED = [0.10, 0.12, 0.08]


def test_by_hand():
    assert metrics.average_accuracy(R) == pytest.approx((0.50 + 0.85 + 0.70) / 3)
    assert metrics.average_accuracy(R, stage=0) == pytest.approx(0.4)
    assert metrics.average_accuracy_seen(R) == pytest.approx([0.90, 0.70, 0.6833333333])
    # task 0: 0.90 - 0.50; task 1: 0.80 - 0.85 (it improved)
    assert metrics.forgetting(R) == pytest.approx((0.40 - 0.05) / 2)
    assert metrics.backward_transfer(R) == pytest.approx((-0.40 + 0.05) / 2)
    # task 1 after task 0: 0.20 - 0.12; task 2 after task 1: 0.30 - 0.08
    assert metrics.forward_transfer(R, UNTRAINED) == pytest.approx((0.08 + 0.22) / 2)
    assert metrics.anytime_accuracy(R, seen=[1, 2, 3]) == pytest.approx((0.90 + 0.70 + 0.6833333333) / 3)
    assert metrics.anytime_accuracy(R) == pytest.approx(np.mean(R))


def test_forgetting_counts_from_the_best_not_from_the_diagonal():
    peak_later = [[0.5, 0.1, 0.1], [0.9, 0.5, 0.1], [0.4, 0.5, 0.5]]
    assert metrics.forgetting(peak_later) == pytest.approx((0.5 + 0.0) / 2)
    assert metrics.backward_transfer(peak_later) == pytest.approx((-0.1 + 0.0) / 2)


def test_accuracy_of_scores():
    scores = torch.tensor([[0.0, 1.0, -torch.inf], [2.0, 1.0, -torch.inf], [0.0, 0.5, 0.7]])
    assert metrics.accuracy(scores, torch.tensor([1, 1, 2])) == pytest.approx(2 / 3)


@given(arrays(float, st.integers(2, 6).map(lambda t: (t, t)), elements=st.floats(0, 1)))
def test_forgetting_is_at_least_negative_backward_transfer(matrix):
    """The best is at least the diagonal; equal where the diagonal is the best."""
    assert metrics.forgetting(matrix) >= -metrics.backward_transfer(matrix) - 1e-12


@given(st.integers(1, 50), st.integers(0, 1000))
def test_evaluation_schedule(evaluations, more):
    points = metrics.evaluation_schedule(evaluations + more, evaluations)
    assert len(points) == len(set(points)) == evaluations
    assert points[-1] == evaluations + more
    assert points[0] >= 1


def test_tasks_that_were_not_tested_matter_only_where_needed():
    lower = np.where(np.tri(3, dtype=bool), R, np.nan)
    assert metrics.average_accuracy(lower) == metrics.average_accuracy(R)
    assert metrics.backward_transfer(lower) == metrics.backward_transfer(R)
    assert metrics.anytime_accuracy(lower, seen=[1, 2, 3]) == metrics.anytime_accuracy(R, seen=[1, 2, 3])
    with pytest.raises(MetricError, match="forward_transfer depends on"):
        metrics.forward_transfer(lower, UNTRAINED)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.average_accuracy([0.5]), r"shape \(1,\)"),
        (lambda: metrics.average_accuracy([[50.0]]), "from 50.0 to 50.0"),
        (lambda: metrics.average_accuracy([[np.nan, 0.5]]), "NaN"),
        (lambda: metrics.forgetting([[0.5]]), r"shape \(1, 1\).*at least 2"),
        (lambda: metrics.backward_transfer([[0.5, 0.5]]), r"shape \(1, 2\)"),
        (lambda: metrics.forward_transfer(R, [0.1]), "one accuracy for each of 3"),
        (lambda: metrics.anytime_accuracy(R, seen=[1, 2]), r"seen=\[1, 2\]"),
        (lambda: metrics.anytime_accuracy(R, seen=[0, 1, 2]), r"seen=\[0, 1, 2\]"),
        (lambda: metrics.evaluation_schedule(5, 6), "6 evaluations in 5"),
        (lambda: metrics.accuracy(torch.zeros(0, 2), torch.zeros(0)), "0 predictions"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(MetricError, match=message):
        call()
