import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bgd.report.statistics import Difference, Summary, Verdict, difference, summarise, verdict

PAPER = Summary(46.34, 2.36, 10)
finite = st.floats(-1e3, 1e3)
summaries = st.builds(Summary, finite, st.floats(0, 50) | st.none(), st.integers(1, 20))


def test_summary_by_hand():
    # mean of 1, 2, 3, 6 is 3; squared deviations 4 + 1 + 0 + 9 = 14; 14 / 3
    assert summarise([1, 2, 3, 6]) == Summary(3.0, pytest.approx(math.sqrt(14 / 3)), 4)
    assert summarise([5]) == Summary(5.0, None, 1)
    assert summarise([]) is None


def test_a_run_that_diverged_is_never_hidden():
    summary = summarise([90.0, math.nan])
    assert math.isnan(summary.mean)
    assert summary.n == 2
    assert verdict(summary, PAPER) is Verdict.UNKNOWN


def test_difference_by_hand():
    # sqrt(9/9 + 16/16) = sqrt 2
    assert difference(Summary(46, 3, 9), Summary(44, 4, 16)) == Difference(2, pytest.approx(math.sqrt(2)))
    # one spread unknown: sqrt(4/1 + 4/16)
    assert difference(Summary(46, None, 1), Summary(44, 2, 16)).standard_error == pytest.approx(math.sqrt(4.25))
    assert difference(Summary(46, None, 1), Summary(44, None, 1)).standard_error is None


@pytest.mark.parametrize(
    ("ours", "paper", "expected"),
    [
        (Summary(46.34 + 2.36, 0.0, 10), PAPER, Verdict.AGREES),  # at the edge of the paper's spread
        (Summary(46.34 + 2.37, 0.0, 10), PAPER, Verdict.HIGHER),  # two standard errors are 2 * 2.36 / sqrt 10 = 1.49
        (Summary(46.34 - 2.37, 0.0, 10), PAPER, Verdict.LOWER),
        # spread 0.03, so 0.1 away is outside; but ours varies: 2 sqrt(0.25/10 + 0.0009/10) = 0.317
        (Summary(19.74, 0.5, 10), Summary(19.64, 0.03, 10), Verdict.AGREES),
        (Summary(19.96, 0.5, 10), Summary(19.64, 0.03, 10), Verdict.HIGHER),
        # a single seed: the paper's spread stands in, 2 * 2.36 * sqrt(1 + 1/10) = 4.95
        (Summary(46.34 - 4.9, None, 1), PAPER, Verdict.AGREES),
        (Summary(46.34 - 5.0, None, 1), PAPER, Verdict.LOWER),
        # the paper gives one run and no spread: ours stands in, 2 * 0.1 * sqrt(1/4 + 1) = 0.2236
        (Summary(98.48, 0.1, 4), Summary(98.26, None, 1), Verdict.AGREES),
        (Summary(98.49, 0.1, 4), Summary(98.26, None, 1), Verdict.HIGHER),
        (Summary(98.26, None, 1), Summary(98.26, None, 1), Verdict.UNKNOWN),
        (None, PAPER, Verdict.UNKNOWN),
        (Summary(98.26, 1.0, 3), None, Verdict.UNKNOWN),
    ],
)
def test_verdict_by_hand(ours, paper, expected):
    assert verdict(ours, paper) is expected


@given(summaries, summaries)
def test_difference_is_antisymmetric(a, b):
    one, other = difference(a, b), difference(b, a)
    assert one.value == -other.value
    assert one.standard_error == pytest.approx(other.standard_error)


@given(summaries, finite)
def test_verdict_does_not_depend_on_the_origin(a, shift):
    shifted = Summary(a.mean + shift, a.spread, a.n)
    expected = verdict(a, a)
    assert verdict(shifted, shifted) is expected
    assert expected is (Verdict.UNKNOWN if a.spread is None else Verdict.AGREES)
