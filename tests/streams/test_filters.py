"""The members against oracles: the exact head, the whole data at once, and calibration that is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bgd.exact import head as exact
from bgd.streams.filters import Setting, absorb_, forecast, grow, learn_, start, symmetric
from bgd.streams.finish import Finish, finished, follow


def one_hot(codes, classes):
    return np.eye(classes)[codes]


def learnt(settings, x, labels, batch, classes=3):
    bank = start([settings], [x.shape[1]], classes)
    for at in range(0, len(x), batch):
        part = slice(at, at + batch)
        learn_(bank, forecast(bank, [x[part]]), labels[part], np.ones(len(x[part])))
    return bank


def data(seed=0, rows=60, dim=5, classes=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, dim)), one_hot(rng.integers(0, classes, rows), classes)


@settings(max_examples=20)
@given(st.integers(0, 10), st.integers(1, 40))
def test_a_least_squares_member_without_drift_is_the_exact_head(seed, batch):
    x, labels = data(seed)
    bank = learnt([Setting(4.0, 0.0, False)], x, labels, batch)
    head = exact.update(exact.init(5, 3, ridge=0.25), x, labels)
    np.testing.assert_allclose(bank.mean[0][0], head.mean, atol=1e-10)
    np.testing.assert_allclose(symmetric(bank.covariance[0]), head.covariance, atol=1e-10)


def test_drift_is_the_kalman_filter_of_weights_that_wander_back_to_their_prior():
    x, labels = data()
    q, r = 0.03, 4.0
    bank = learnt([Setting(r, q, False)], x, labels, 1)
    mean, covariance = np.zeros((5, 3)), r * np.eye(5)
    for row, label in zip(x, labels, strict=True):
        gain = covariance @ row / (1.0 + row @ covariance @ row)
        mean = np.sqrt(1 - q) * (mean + np.outer(gain, label - row @ mean))
        covariance = (1 - q) * (covariance - np.outer(gain, row @ covariance)) + q * r * np.eye(5)
    np.testing.assert_allclose(bank.mean[0][0], mean, atol=1e-10)
    np.testing.assert_allclose(symmetric(bank.covariance[0]), covariance, atol=1e-10)


def test_members_side_by_side_are_members_alone():
    x, labels = data()
    settings = [Setting(3.0, 0.0, False), Setting(30.0, 1e-3, True)]
    both = learnt(settings, x, labels, 8)
    for m, setting in enumerate(settings):
        alone = learnt([setting], x, labels, 8)
        np.testing.assert_allclose(both.mean[0][m], alone.mean[0][0], atol=1e-10)
        np.testing.assert_allclose(both.calibration[m], alone.calibration[0], atol=1e-10)


def test_a_logistic_member_finds_the_odds():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(4000), rng.normal(size=4000)])
    true = 1 / (1 + np.exp(-(0.5 + 1.5 * x[:, 1])))
    labels = one_hot((rng.random(4000) < true).astype(int), 2)
    bank = learnt([Setting(30.0, 0.0, True)], x, labels, 16, classes=2)
    odds = bank.mean[0][0, :, 1] - bank.mean[0][0, :, 0]
    np.testing.assert_allclose(odds, [0.5, 1.5], atol=0.15)


def test_columns_and_classes_that_come_late_were_zero_before():
    x, labels = data(classes=2)
    x[:30, 3:] = 0.0
    early = learnt([Setting(4.0, 0.0, False)], x[:30, :3], labels[:30], 10, classes=2)
    late = grow(early, [5], 3)
    whole = learnt([Setting(4.0, 0.0, False)], x[:30], np.pad(labels[:30], ((0, 0), (0, 1))), 10, classes=3)
    np.testing.assert_allclose(late.mean[0], whole.mean[0], atol=1e-12)
    np.testing.assert_allclose(late.covariance[0], whole.covariance[0], atol=1e-12)


def test_a_weight_of_two_is_two_examples():
    x, labels = data(rows=1)
    once = start([[Setting(4.0, 0.0, False)]], [5], 3)
    learn_(once, forecast(once, [x]), labels, np.full(1, 2.0))
    twice = learnt([Setting(4.0, 0.0, False)], np.repeat(x, 2, 0), np.repeat(labels, 2, 0), 2)
    np.testing.assert_allclose(once.mean[0], twice.mean[0], atol=1e-12)


def test_the_covariance_stays_symmetric_and_positive_over_a_long_stream():
    rng = np.random.default_rng(0)
    bank = start([[Setting(30.0, 0.0, False), Setting(30.0, 1e-3, True)]], [20], 2)
    direction = rng.normal(size=20)
    for _ in range(500):  # nearly collinear features
        x = rng.normal(size=(16, 1)) * direction + 1e-6 * rng.normal(size=(16, 20))
        learn_(bank, forecast(bank, [x]), one_hot(rng.integers(0, 2, 16), 2), np.ones(16))
    for covariance in bank.covariance:
        assert np.linalg.eigvalsh(symmetric(covariance)).min() > -1e-9


@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.2])
def test_the_finish_finds_how_often_labels_are_wrong(wrong):
    rng = np.random.default_rng(0)
    state = Finish()
    for _ in range(400):
        truth = rng.integers(0, 2, 16)
        mixed = np.where(one_hot(truth, 2) > 0, 0.85, 0.15)  # always right, never sure
        labels = one_hot(np.where(rng.random(16) < wrong, 1 - truth, truth), 2)
        state, _ = follow(state, mixed, labels, np.ones(16))
    assert finished(state, np.array([[0.85, 0.15]]))[0, 0] == pytest.approx(1 - wrong, abs=0.03)


def test_absorbing_returns_errors_of_unit_variance():
    rng = np.random.default_rng(0)
    whites = []
    for _ in range(300):
        weights = rng.normal(size=(3, 1))
        bank = start([[Setting(1.0, 0.0, False)]], [3], 1)
        x = rng.normal(size=(4, 3))
        y = x @ weights + rng.normal(size=(4, 1))
        whites.append(absorb_(bank, forecast(bank, [x]), y[None], np.ones((1, 4))))
    assert np.std(whites) == pytest.approx(1.0, abs=0.05)
