import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.philox import Purpose, integers, permutation, random_words, unit


def test_the_random_words_never_change():
    """Numbers of today: a stream must give the same bytes under every later version."""
    assert random_words(2019, Purpose.BATCH, (3, 5), 3).tolist() == GOLDEN


GOLDEN = [2381525181492431991, 7203494892401943628, 16215574511921966997]


def test_positions_purposes_and_seeds_differ():
    seen = {
        tuple(random_words(seed, purpose, position, 2).tolist())
        for seed in (0, 1)
        for purpose in Purpose
        for position in ((0, 0), (0, 1), (1, 0), (1, 1))
    }
    assert len(seen) == 2 * len(Purpose) * 4


def test_global_generator_is_untouched():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    permutation(1, Purpose.ORDER, (0, 0), 100)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@given(st.integers(1, 2**31), st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_integers_stay_below_n(n, raw):
    numbers = integers(np.array(raw, dtype=np.uint64), n)
    assert numbers.min() >= 0
    assert numbers.max() < n


def test_unit_never_reaches_one():
    assert unit(np.array([2**64 - 1], dtype=np.uint64))[0] < 1


def test_distributions():
    raw = random_words(5, Purpose.BATCH, (0, 0), 50_000)
    assert stats.kstest(unit(raw), "uniform").pvalue > 0.01
    assert stats.chisquare(np.bincount(integers(raw, 7))).pvalue > 0.01


def test_permutations_are_uniform():
    counts = np.zeros((4, 4))
    for position in range(4000):
        counts[np.arange(4), permutation(0, Purpose.ORDER, (0, position), 4)] += 1
    assert stats.chisquare(counts.ravel()).pvalue > 0.01


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seed_out_of_range(seed):
    with pytest.raises(ScenarioError, match=f"seed={seed}"):
        random_words(seed, Purpose.BATCH, (0, 0), 1)
