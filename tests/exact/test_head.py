"""The exact head against closed forms on the whole data: any order, any batches, merged, forgotten, discounted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from bgd.exact import (
    ExactError,
    Head,
    absorb,
    absorb_,
    add_outputs,
    discount,
    fade,
    forget,
    gaussian,
    init,
    innovation,
    merge,
    noise_variance,
    predict,
    restore,
    state_of,
    student_t,
    update,
)


def problem(seed=0, n=60, dim=7, outputs=3, noise=0.3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dim))
    return x, x @ rng.normal(size=(dim, outputs)) + noise * rng.normal(size=(n, outputs))


def ridge_solution(x, y, ridge, weights=None):
    weights = np.ones(len(x)) if weights is None else weights
    precision = ridge * np.eye(x.shape[1]) + (x * weights[:, None]).T @ x
    return np.linalg.solve(precision, (x * weights[:, None]).T @ y), np.linalg.inv(precision)


def learn(head, x, y, sizes):
    start = 0
    for size in sizes:
        head = update(head, x[start : start + size], y[start : start + size])
        start += size
    return update(head, x[start:], y[start:])


def close(one: Head, other: Head, tolerance=1e-8):
    for name, a, b in zip(Head._fields, one, other, strict=True):
        assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
@settings(max_examples=40, deadline=None)
def test_any_order_and_any_batches_give_ridge_regression_on_all_data(sizes, seed, ridge):
    x, y = problem(seed % 50)
    order = np.random.default_rng(seed).permutation(len(x))
    head = learn(init(7, 3, ridge), x[order], y[order], sizes)
    mean, covariance = ridge_solution(x, y, ridge)
    assert_allclose(head.mean, mean, rtol=1e-8, atol=1e-8)
    assert_allclose(head.covariance, covariance, rtol=1e-8, atol=1e-8)
    assert_allclose(head.residual, (y * y).sum(0) - (mean * (x.T @ y)).sum(0), rtol=1e-8, atol=1e-8)


@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6))
@settings(max_examples=30, deadline=None)
def test_the_covariance_stays_symmetric_and_positive_definite(seed, ridge):
    rng = np.random.default_rng(seed)
    head = init(9, 1, ridge)
    for _ in range(30):
        scale = 10 ** rng.uniform(-3, 3)
        x = scale * rng.normal(size=(int(rng.integers(1, 6)), 9))
        head = update(head, x, x[:, :1])
        assert_array_equal(head.covariance, head.covariance.T)
    assert np.linalg.eigvalsh(head.covariance).min() > -1e-12 * np.abs(head.covariance).max()
    assert predict(head, rng.normal(size=(5, 9))).variance.min() >= 0


def test_equals_bayesian_ridge_with_fixed_precisions():
    """scikit-learn's posterior mean and covariance, with its estimated precisions as ours."""
    from sklearn.linear_model import BayesianRidge

    x, y = problem(outputs=1)
    theirs = BayesianRidge(fit_intercept=False, tol=1e-12, max_iter=1000).fit(x, y[:, 0])
    head = learn(init(7, 1, theirs.lambda_ / theirs.alpha_), x, y, [5] * 8)
    assert_allclose(head.mean[:, 0], theirs.coef_, rtol=1e-8, atol=1e-8)
    assert_allclose(head.covariance / theirs.alpha_, theirs.sigma_, rtol=1e-6, atol=1e-9)
    _, std = theirs.predict(x, return_std=True)
    variance = predict(head, x).variance
    assert_allclose(np.sqrt((1 + variance) / theirs.alpha_), std, rtol=1e-6)


def test_a_weight_is_so_many_examples():
    x, y = problem()
    counts = np.arange(len(x)) % 4
    weighted = update(init(7, 3, 0.5), x, y, counts.astype(float))
    close(weighted, update(init(7, 3, 0.5), np.repeat(x, counts, 0), np.repeat(y, counts, 0)))


def test_in_place_equals_pure_bit_for_bit():
    x, y = problem()
    head, mine = init(7, 3, [0.1, 1.0]), init(7, 3, [0.1, 1.0])
    for i in range(0, 60, 6):
        head = absorb(head, innovation(head, x[i : i + 6], y[i : i + 6]))
        absorb_(mine, innovation(mine, x[i : i + 6], y[i : i + 6]))
    for a, b in zip(head, mine, strict=True):
        assert_array_equal(a, b)


def test_members_equal_heads_of_their_own():
    x, y = problem()
    ridges = [0.01, 1.0, 100.0]
    members = discount(learn(init(7, 3, ridges), x, y, [1, 16, 3]), [1.0, 0.9, 0.5])
    for m, (ridge, gamma) in enumerate(zip(ridges, [1.0, 0.9, 0.5], strict=True)):
        alone = discount(learn(init(7, 3, ridge), x, y, [1, 16, 3]), gamma)
        close(Head(*(part[m] for part in members)), alone, 1e-10)
    assert predict(members, x).mean.shape == (3, 60, 3)
    assert student_t(members, innovation(members, x, y)).shape == (3, 3)


def test_merged_heads_equal_one_that_saw_everything():
    x, y = problem()
    one, other = update(init(7, 3, 2.0), x[:20], y[:20]), update(init(7, 3, 2.0), x[20:], y[20:])
    close(merge(one, other), update(init(7, 3, 2.0), x, y))
    with pytest.raises(ExactError, match="cannot merge: both need the same features, outputs and prior"):
        merge(one, init(7, 3, 1.0))


def test_forgotten_examples_were_never_there():
    x, y = problem()
    head = forget(update(init(7, 3, 0.1), x, y), x[10:25], y[10:25])
    close(head, update(init(7, 3, 0.1), np.delete(x, range(10, 25), 0), np.delete(y, range(10, 25), 0)))
    everything = forget(head, np.delete(x, range(10, 25), 0), np.delete(y, range(10, 25), 0))
    close(everything, init(7, 3, 0.1))


@pytest.mark.parametrize("blocks", [1, 4, 60])
def test_discount_is_weighted_least_squares(blocks):
    """An example's weight is gamma^(batches since), the prior's 1, however often it is given back."""
    x, y = problem()
    gamma, head = 0.8, init(7, 3, 0.7)
    batches = np.split(np.arange(60), 20)
    for i, rows in enumerate(batches):
        head = update(fade(head, gamma), x[rows], y[rows])
        if (i + 1) % blocks == 0:
            head = restore(head)
    head = restore(head)
    weights = gamma ** (19 - np.arange(60) // 3)
    mean, covariance = ridge_solution(x, y, 0.7, weights)
    assert_allclose(head.mean, mean, rtol=1e-8, atol=1e-8)
    assert_allclose(head.covariance, covariance, rtol=1e-8, atol=1e-8)
    assert_allclose(head.examples, weights.sum())
    left = (weights[:, None] * y * y).sum(0) - (mean * ((x * weights[:, None]).T @ y)).sum(0)
    assert_allclose(head.residual, left, rtol=1e-8, atol=1e-8)


def test_a_new_output_equals_one_whose_targets_were_zero():
    x, y = problem()
    late = update(add_outputs(update(init(7, 2), x[:30], y[:30, :2]), 1), x[30:], y[30:])
    targets = y.copy()
    targets[:30, 2] = 0
    close(late, update(init(7, 3), x, targets))


def test_gaussian_evidence_is_the_marginal_likelihood_in_any_batches():
    x, y = problem(n=12, outputs=2)
    whole = sum(
        stats.multivariate_normal(np.zeros(12), 0.4 * (np.eye(12) + x @ x.T / 0.3)).logpdf(y[:, k]) for k in range(2)
    )
    for sizes in ([12], [1] * 12, [5, 4, 3]):
        head, total, start = init(7, 2, 0.3), 0.0, 0
        for size in sizes:
            found = innovation(head, x[start : start + size], y[start : start + size])
            total += gaussian(found, noise=0.4)
            head, start = absorb(head, found), start + size
        assert_allclose(total, whole, rtol=1e-10)


def test_student_evidence_is_the_multivariate_t_in_any_batches():
    x, y = problem(n=12, outputs=2)
    shape, rate = 1.5, 0.8
    scale = rate / shape * (np.eye(12) + x @ x.T / 0.3)
    whole = [stats.multivariate_t(np.zeros(12), scale, df=2 * shape).logpdf(y[:, k]) for k in range(2)]
    for sizes in ([12], [1] * 12, [5, 4, 3]):
        head, total, start = init(7, 2, 0.3), 0.0, 0
        for size in sizes:
            found = innovation(head, x[start : start + size], y[start : start + size])
            total = total + student_t(head, found, shape, rate)
            head, start = absorb(head, found), start + size
        assert_allclose(total, whole, rtol=1e-10)


def test_the_noise_is_found():
    x, y = problem(n=4000, noise=0.3)
    assert_allclose(noise_variance(update(init(7, 3, 1e-3), x, y)), 0.09, rtol=0.1)


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e12])
def test_survives_bad_conditions(condition):
    """Against a singular value decomposition of all data, which loses half the digits of a Cholesky factorisation."""
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.normal(size=(20, 20)))
    x = rng.normal(size=(400, 20)) * np.logspace(0, -np.log10(condition) / 2, 20) @ basis
    y = x @ rng.normal(size=(20, 1))
    ridge = 400 / condition
    head = init(20, 1, ridge)
    for i in range(0, 400, 8):
        head = update(head, x[i : i + 8], y[i : i + 8])
    left, values, right = np.linalg.svd(x, full_matrices=False)
    mean = right.T @ (values / (values**2 + ridge) * (left.T @ y)[:, 0])
    covariance = right.T @ np.diag(1 / (values**2 + ridge)) @ right
    assert np.abs(head.mean[:, 0] - mean).max() / np.abs(mean).max() < 1e-19 * condition + 1e-13
    assert np.abs(head.covariance - covariance).max() / np.abs(covariance).max() < 1e-18 * condition + 1e-13
    assert_allclose(np.linalg.eigvalsh(head.covariance).min(), 1 / (values[0] ** 2 + ridge), rtol=1e-4)
    assert_allclose(x @ head.mean[:, 0], x @ mean, atol=1e-9)


def test_a_long_stream_with_discount_does_not_drift():
    """A hundred windows long: still the closed form, so errors do not add up."""
    x, y = problem(n=4000)
    head = init(7, 3, 0.5)
    for i in range(0, 4000, 4):
        head = update(fade(head, 0.9), x[i : i + 4], y[i : i + 4])
        if i % 20 == 0:
            head = restore(head)
    mean, _ = ridge_solution(x, y, 0.5, 0.9 ** (999 - np.arange(4000) // 4))
    assert_allclose(restore(head).mean, mean, rtol=1e-8, atol=1e-8)


def test_a_state_is_independent_of_further_learning():
    x, y = problem()
    head = update(init(7, 3), x, y)
    state = state_of(head)
    again = Head(**state)
    absorb_(head, innovation(head, x, y))
    close(again, update(init(7, 3), x, y), 0)


@pytest.mark.parametrize(
    ("x", "y", "weights", "message"),
    [
        (np.ones((2, 8)), np.ones((2, 3)), None, r"features of shape \(2, 8\) .* a head of 7 features and 3 outputs"),
        (np.ones((2, 7)), np.ones((3, 3)), None, r"targets of shape \(3, 3\) do not fit"),
        (np.full((2, 7), np.inf), np.ones((2, 3)), None, "features contain NaN or infinity in row 0"),
        (np.ones((2, 7)), np.array([[1, 1, 1], [1, np.nan, 1]]), None, "targets contain NaN or infinity in row 1"),
        (np.ones((2, 7)), np.ones((2, 3)), np.array([1.0, -1.0]), "one finite number >= 0 for each of 2 examples"),
    ],
)
def test_bad_input_is_refused(x, y, weights, message):
    with pytest.raises(ExactError, match=message):
        update(init(7, 3), x, y, weights)


def test_an_empty_batch_changes_nothing():
    head = update(init(7, 3), *problem())
    close(update(head, np.ones((0, 7)), np.ones((0, 3))), head, 0)
    assert gaussian(innovation(head, np.ones((0, 7)), np.ones((0, 3)))) == 0
