"""The alarm: its rate of false alarms holds, real changes are found, and its state is complete."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bgd.errors import SettingError
from bgd.streams.drift import DriftAlarm, SortedWindow, add_evidence, e_values, scores_of

N, EVERY = 20_000, 500
"""Expected false alarms: at most 40."""


def autocorrelated(noise, rho):
    values = np.zeros(len(noise))
    for t in range(1, len(noise)):
        values[t] = rho * values[t - 1] + np.sqrt(1 - rho**2) * noise[t]
    return values


def calm_streams():
    rng, t = np.random.default_rng(5), np.arange(N)
    normal, surprise = rng.standard_normal(N), rng.exponential(size=N)
    yield "independent", surprise
    yield "errors of one in ten", (rng.random(N) < 0.1).astype(float)
    yield "without a mean", rng.standard_cauchy(N)
    yield "autocorrelated", np.exp(autocorrelated(normal, 0.9))
    yield "alternating", autocorrelated(normal, -0.6)
    yield "a learner that improves", surprise * (0.3 + 2 / np.sqrt(1 + t))
    yield "runs of hard examples", surprise * (1 + 2 * (np.cumsum(rng.random(N) < 1 / 50) % 2))
    yield "constant", np.ones(N)


@pytest.mark.parametrize(("kind", "values"), list(calm_streams()))
def test_false_alarms_are_as_rare_as_was_set(kind, values):
    expected = N / EVERY
    assert len(DriftAlarm(EVERY).update_many(values)) <= expected + 2.5 * np.sqrt(expected)


def test_the_rate_is_used_and_not_only_kept():
    """An alarm that never rings keeps every rate."""
    values = np.random.default_rng(0).exponential(size=N)
    assert len(DriftAlarm(EVERY).update_many(values)) > N / EVERY / 3


@pytest.mark.parametrize(
    ("before", "after", "within"),
    [
        (lambda rng: rng.exponential(size=3000), lambda rng: 2 * rng.exponential(size=1000), 150),
        (lambda rng: rng.random(3000) < 0.1, lambda rng: rng.random(1000) < 0.3, 250),
        (lambda rng: rng.standard_normal(3000), lambda rng: rng.standard_normal(1000) + 0.5, 250),
    ],
)
def test_a_rise_is_found_soon_and_reported_once(before, after, within):
    rng = np.random.default_rng(3)
    events = DriftAlarm(10_000).update_many(np.concatenate([before(rng), after(rng)]))
    assert len(events) == 1
    assert 3000 < events[0].at < 3000 + within
    assert abs(events[0].since - 3000) < within
    assert events[0].evidence >= 10_000


def test_a_fall_is_no_event():
    rng = np.random.default_rng(3)
    assert DriftAlarm(10_000).update_many(np.r_[rng.exponential(size=3000), 0.1 * rng.exponential(size=3000)]) == []


@given(st.integers(1, 400))
def test_bets_on_ranks_are_fair_or_worse(count):
    """Any of so many exchangeable values is as likely the newest: the e-values of all ranks average at most 1."""
    ranks = (np.arange(count) + 0.5) / count
    means = np.mean([e_values(scores_of(p), (0.0, 0.0)) for p in ranks], axis=0)
    assert (means <= 1 + 1e-12).all()
    assert (means > 0.5).all()


@given(st.floats(0.0005, 1), st.floats(-0.9, 0.9), st.floats(-0.4, 5))
def test_e_values_are_never_negative(p, rise, tail):
    assert min(e_values(scores_of(p), (rise, tail))) > 0


def test_evidence_without_bets_counts_the_values():
    evidence = [0.0]
    for _ in range(7):
        evidence = add_evidence(evidence, [1.0])
    assert evidence == [7.0]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_a_window_ranks_among_its_values_and_counts_ties_half(values):
    window, size = SortedWindow(8), 8
    for i, value in enumerate(values):
        others = np.array(values[max(0, i - size) : i])
        expected = ((others > value).sum() + 0.5 * ((others == value).sum() + 1)) / (len(others) + 1)
        assert window.add(value) == pytest.approx(expected)


def test_many_at_once_are_one_after_the_other():
    values = np.random.default_rng(2).exponential(size=1500)
    one, many = DriftAlarm(200), DriftAlarm(200)
    events = [event for value in values if (event := one.update(value))]
    assert many.update_many(values[:700]) + many.update_many(values[700:]) == events != []
    assert one.state_dict() == many.state_dict()


def test_a_saved_alarm_continues_exactly_and_does_not_grow():
    values = np.random.default_rng(2).exponential(size=6000)
    values[5] = np.inf
    whole, part, other = DriftAlarm(400, memory=300), DriftAlarm(400, memory=300), DriftAlarm()
    whole.update_many(values)
    part.update_many(values[:2500])
    other.load_state_dict(json.loads(json.dumps(part.state_dict())))
    other.update_many(values[2500:])
    assert other.state_dict() == whole.state_dict()
    assert len(whole.window.values) <= 300


def test_the_score_is_small_where_the_evidence_is_large():
    alarm, rng = DriftAlarm(1e9), np.random.default_rng(0)
    assert alarm.score == 1
    alarm.update_many(rng.exponential(size=1000))
    calm = alarm.score
    alarm.update_many(5 * rng.exponential(size=40))
    assert alarm.score < 1e-3 < calm <= 1


def test_a_wrong_value_changes_nothing():
    alarm = DriftAlarm()
    alarm.update_many([1.0, 2.0])
    before = alarm.state_dict()
    for change in (lambda: alarm.update(float("nan")), lambda: alarm.update_many([1.0, np.nan])):
        with pytest.raises(SettingError, match=r"value [23] of the alarm is NaN"):
            change()
    assert alarm.state_dict() == before


@pytest.mark.parametrize("settings", [{"every": 5}, {"every": float("nan")}, {"memory": 3}, {"memory": 2.5}])
def test_settings_out_of_range_are_named(settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        DriftAlarm(**settings)


def test_a_state_that_is_none_is_refused():
    with pytest.raises(SettingError, match="not the state of a DriftAlarm"):
        DriftAlarm().load_state_dict({"every": 1})
