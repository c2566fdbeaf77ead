"""The stream of a table: its rows in order, standardised by the past alone."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bgd.data.tables import Table
from bgd.scenarios import Prequential, ScenarioError, scenario
from bgd.scenarios.streams.prequential import standardise_by_past

AGNOSTIC = scenario("continuous task-agnostic")


def table(n=50, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(1000, [1, 200, 3], (n, 3))
    x[rng.random(x.shape) < 0.1] = np.nan
    return Table("made", x, rng.integers(0, 3, n), ("a", "b", "c"), ("0", "1", "2"))


def test_every_row_comes_once_in_order():
    data = table()
    stream = Prequential(data, AGNOSTIC, batch_size=8)
    batches = list(stream)
    assert len(batches) == len(stream) == 7
    assert torch.cat([batch.y for batch in batches]).tolist() == data.y.tolist()
    expected = standardise_by_past(data.x, 8)
    np.testing.assert_array_equal(torch.cat([batch.x for batch in batches]).reshape(50, 3).numpy(), expected)
    assert stream.stages == (7,)
    torch.testing.assert_close(stream.batch(3).x, batches[3].x)


@given(st.integers(1, 20), st.integers(0, 49))
def test_nothing_comes_from_the_batch_itself_or_later(batch_size, row):
    x = table().x
    changed = x.copy()
    changed[row:] = 7.0
    start = row // batch_size * batch_size
    np.testing.assert_array_equal(
        standardise_by_past(x, batch_size)[:start], standardise_by_past(changed, batch_size)[:start]
    )


def test_a_batch_has_the_mean_and_std_of_all_rows_before_it():
    x = table(n=200).x
    done = standardise_by_past(x, 16)[160:176]
    mean, std = np.nanmean(x[:160], axis=0), np.nanstd(x[:160], axis=0)
    expected = np.clip(np.nan_to_num((x[160:176] - mean) / std), -10, 10)
    np.testing.assert_allclose(done, expected, rtol=1e-5, atol=1e-6)


def test_constant_and_empty_columns_become_zeros():
    x = np.stack([np.full(40, 1e9), np.full(40, np.nan)], axis=1)
    done = standardise_by_past(x, 4)
    assert (done[4:] == 0).all()
    assert np.isfinite(done).all()


def test_it_needs_a_scenario_without_boundaries():
    with pytest.raises(ScenarioError, match="no boundaries"):
        Prequential(table(), scenario("domain"))
