"""Sums that are solved when needed: the same posterior as the head's, exact under merging, forgetting and discount."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch.testing import assert_close

from bgd.exact import init, predict, statistics, update
from bgd.exact.head import ExactError


def problem(seed=0, n=60, dim=7, outputs=3):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, dim, generator=generator, dtype=torch.float64)
    noise = torch.randn(n, outputs, generator=generator, dtype=torch.float64)
    return x, x @ torch.randn(dim, outputs, generator=generator, dtype=torch.float64) + 0.3 * noise


def sums_of(x, y, weights=None):
    return statistics.add(statistics.empty(x.shape[1], y.shape[1]), x, y, weights)


def same(one, other, **tolerance):
    assert_close(one.gram.tril(), other.gram.tril(), **tolerance)
    for a, b in zip(one[1:], other[1:], strict=True):
        assert_close(a, b, **tolerance)


def test_the_evidence_is_the_marginal_likelihood_at_the_best_noise():
    x, y = problem(n=15)
    posterior = statistics.solve(sums_of(x, y), ridge=0.4)
    noise = posterior.noise_variance().numpy()
    covariance = torch.eye(15, dtype=torch.float64) + x @ x.T / 0.4
    for k, evidence in enumerate(posterior.log_evidence(0.4)):
        marginal = stats.multivariate_normal(np.zeros(15), noise[k] * covariance.numpy())
        assert float(evidence) == pytest.approx(marginal.logpdf(y[:, k].numpy()), rel=1e-9)
        for other in (0.9, 1.1):
            shifted = stats.multivariate_normal(np.zeros(15), other * noise[k] * covariance.numpy())
            assert shifted.logpdf(y[:, k].numpy()) < float(evidence)


EXACT = {"rtol": 1e-10, "atol": 1e-10}


@pytest.mark.parametrize("panel", [2, 1024])
def test_the_posterior_is_that_of_the_head(panel, monkeypatch):
    monkeypatch.setattr(statistics, "PANEL", panel)
    x, y = problem()
    posterior = statistics.solve(sums_of(x, y), ridge=0.4)
    head = update(init(7, 3, 0.4), x.numpy(), y.numpy())
    expected = predict(head, x.numpy())
    assert_close(x @ posterior.mean, torch.from_numpy(expected.mean), **EXACT)
    assert_close(posterior.variance(x), torch.from_numpy(expected.variance), **EXACT)
    assert_close(posterior.residual, torch.from_numpy(head.residual), **EXACT)


@given(st.permutations(range(6)), st.integers(1, 5))
@settings(max_examples=20, deadline=None)
def test_shards_in_any_order_add_up(order, split):
    x, y = problem()
    shards = [sums_of(x[i * 10 : i * 10 + 10], y[i * 10 : i * 10 + 10]) for i in order]
    left, right = shards[0], shards[split]
    for shard in shards[1:split]:
        left = statistics.merge(left, shard)
    for shard in shards[split + 1 :]:
        right = statistics.merge(right, shard)
    same(statistics.merge(left, right), sums_of(x, y), **EXACT)


def test_forgotten_examples_were_never_there():
    x, y = problem()
    kept_x, kept_y = torch.cat([x[:20], x[35:]]), torch.cat([y[:20], y[35:]])
    same(statistics.forget(sums_of(x, y), x[20:35], y[20:35]), sums_of(kept_x, kept_y), **EXACT)


def test_discount_and_weights_are_weighted_least_squares():
    x, y = problem()
    sums = statistics.discount_(sums_of(x[:30], y[:30]), 0.5)
    weights = torch.linspace(0, 2, 30, dtype=torch.float64)
    sums = statistics.add(sums, x[30:], y[30:], weights)
    rows = torch.cat([torch.full((30,), 0.5, dtype=torch.float64), weights]).sqrt()[:, None]
    expected = sums_of(x * rows, y * rows)._replace(examples=torch.tensor(15.0 + 30, dtype=torch.float64))
    same(sums, expected, **EXACT)


def test_new_outputs_have_targets_of_zero():
    x, y = problem()
    late = statistics.add(statistics.add_outputs(sums_of(x[:30], y[:30, :2]), 1), x[30:], y[30:])
    targets = y.clone()
    targets[:30, 2] = 0
    same(late, sums_of(x, targets), **EXACT)


def test_products_in_float32_are_as_good_as_their_documented_error():
    """200 blocks: the relative error stays that of one product, since the sums are float64."""
    x, y = problem(n=20_000, dim=30)
    single, double = statistics.empty(30, 3), sums_of(x, y)
    for rows in range(0, len(x), 100):
        statistics.add_(single, x[rows : rows + 100].float(), y[rows : rows + 100].float())
    error = torch.linalg.eigvalsh((single.gram - double.gram).tril() + (single.gram - double.gram).tril(-1).T)
    assert error.abs().max() < 1e-7 * torch.linalg.eigvalsh(double.gram, UPLO="L").max()
    assert_close(statistics.solve(single).mean, statistics.solve(double).mean, rtol=1e-5, atol=1e-6)


def test_a_ridge_that_is_too_small_for_float32_is_refused():
    x = torch.ones(1000, 1) @ torch.rand(1, 40, generator=torch.Generator().manual_seed(0))
    sums = statistics.add(statistics.empty(40, 1), 1000 * x, torch.ones(1000, 1))
    with pytest.raises(ExactError, match=r"ridge=1e-12 is too small .* use at least .* or features in float64"):
        statistics.solve(sums, ridge=1e-12)


def test_bad_input_leaves_the_sums_as_they_were():
    x, y = problem()
    sums = sums_of(x, y)
    for bad in (x[:, :5], torch.full_like(x, np.nan)):
        with pytest.raises(ExactError):
            statistics.add_(sums, bad, y)
    same(sums, sums_of(x, y), rtol=0, atol=0)
