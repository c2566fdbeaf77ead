import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.streams.schedule import corners, proportions


def test_the_papers_numbers():
    """N = 93,800, T = 10, beta = 4: 9,380 expected iterations each, and 55 % hold one task only."""
    share = proportions(np.arange(93_800), corners(93_800, 10, 4))
    np.testing.assert_allclose(share.sum(axis=0), 9_380, rtol=1e-12)
    assert round(float((share.max(axis=1) == 1).mean()), 2) == 0.55
    assert ((share > 0).sum(axis=1) <= 2).all()


def test_corners_as_stated():
    n, t, beta = 1003, 7, 4
    for k, (s, p1, p2, e) in enumerate(corners(n, t, beta).tolist()):
        if k:
            assert s == max(math.floor((beta * k - 1) * n / (beta * t)), 0)
            assert p1 == math.floor((beta * k + 1) * n / (beta * t))
        if k < t - 1:
            assert p2 == math.floor((beta * k + beta - 1) * n / (beta * t))
            assert e == min(math.floor((beta * k + beta + 1) * n / (beta * t)), n)


def test_weights_as_stated():
    n, t, beta = 800, 4, 4
    share = proportions(np.arange(n), corners(n, t, beta))
    s, p1, p2, e = corners(n, t, beta)[1]
    assert (share[:s, 1] == 0).all()
    assert (share[p1:p2, 1] == 1).all()
    assert (share[e:, 1] == 0).all()
    np.testing.assert_allclose(share[s:p1, 1], np.linspace(0, 1, p1 - s))
    np.testing.assert_allclose(share[p2:e, 1], np.linspace(1, 0, e - p2))
    assert share[0, 0] == share[-1, -1] == 1


@pytest.mark.parametrize("beta", [0.1, 0.5, 1])
def test_small_beta_switches_hard(beta):
    share = proportions(np.arange(100), corners(100, 4, beta))
    assert (share == np.eye(4)[np.arange(100) // 25]).all()


@given(st.integers(1, 12), st.integers(0, 500), st.floats(0.05, 1e3))
def test_a_distribution_at_every_iteration_for_any_beta(tasks, more, beta):
    n = tasks + more
    share = proportions(np.arange(n), corners(n, tasks, beta))
    np.testing.assert_allclose(share.sum(axis=1), 1)
    assert (share >= 0).all()
    assert (share.sum(axis=0) > 0).all()


def test_larger_beta_overlaps_less():
    alone = [(proportions(np.arange(1000), corners(1000, 5, b)).max(axis=1) == 1).mean() for b in (2, 4, 8)]
    assert all(a < b for a, b in itertools.pairwise(alone))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((100, 0, 4), "T=0"),
        ((100, -1, 4), "T=-1"),
        ((3, 4, 4), "N=3"),
        ((100, 4, 0), "beta=0"),
        ((100, 4, -2.0), "beta=-2"),
        ((100, 4, math.nan), "beta=nan"),
        ((100, 4, math.inf), "beta=inf"),
    ],
)
def test_arguments_out_of_range_are_rejected(arguments, message):
    with pytest.raises(ScenarioError, match=message):
        corners(*arguments)
