"""The stream learners through scikit-learn's interface."""

import copy
import unittest
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from bgd import StreamClassifier, StreamRegressor
from bgd.errors import BGDError


@pytest.mark.parametrize("learner", [StreamClassifier(), StreamRegressor()], ids=lambda learner: type(learner).__name__)
def test_scikit_learn_accepts_it(learner):
    passed = 0
    for estimator, check in estimator_checks_generator(learner):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                check(estimator)
                passed += 1
            except unittest.SkipTest:
                continue
    assert passed > 40


def xor(rows, seed=0, switched=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    return x, ((x[:, 0] * x[:, 1] > 0) ^ switched).astype(int)


def follow(learner, x, y, batch=16):
    for at in range(0, len(x), batch):
        learner.partial_fit(x[at : at + batch], y[at : at + batch])
    return learner


def _parts(bank):
    return [array for part in bank for array in (part if isinstance(part, tuple) else [part])]


def state(learner):
    mixture = learner._mixture
    net = getattr(mixture, "net", None)
    arrays = [mixture.weights, *mixture.encoder.scaling, *_parts(mixture.bank), *(net[1:] if net else ())]
    return [np.copy(array) for array in arrays], mixture.seen, list(mixture.encoder.columns)


def assert_same_state(one, other):
    assert one[1:] == other[1:]
    for a, b in zip(one[0], other[0], strict=True):
        np.testing.assert_array_equal(a, b)


def test_it_learns_again_after_the_world_has_changed():
    learner = follow(StreamClassifier(), *xor(1500))
    assert learner.score(*xor(500, seed=1)) > 0.9
    follow(learner, *xor(1500, seed=2, switched=True))
    assert learner.score(*xor(500, seed=3, switched=True)) > 0.85


@pytest.mark.parametrize("batch", [1, 16, 1000])
def test_any_size_of_batch(batch):
    assert follow(StreamClassifier(), *xor(400), batch=batch).score(*xor(500, seed=1)) > 0.8


def test_probabilities_are_what_happens():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 2))
    y = rng.random(4000) < 1 / (1 + np.exp(-2 * x[:, 0]))
    learner = follow(StreamClassifier(), x[:2000], y[:2000])
    p = learner.predict_proba(x[2000:])[:, 1]
    for low in np.arange(0.0, 1.0, 0.2):
        inside = (p >= low) & (p < low + 0.2)
        assert y[2000:][inside].mean() == pytest.approx(p[inside].mean(), abs=0.08)


def test_classes_come_as_they_come_and_are_sorted():
    rng = np.random.default_rng(0)
    centres = {"c": (4, 0), "a": (-4, 0), "b": (0, 4)}
    learner = StreamClassifier()
    for names in (["c"], ["c", "a"], ["c", "a", "b"]):
        labels = rng.choice(names, 160)
        follow(learner, np.array([centres[name] for name in labels]) + rng.normal(size=(160, 2)), labels)
        assert learner.classes_.tolist() == sorted(names)
    assert learner.predict(list(centres.values())).tolist() == list(centres)
    np.testing.assert_allclose(learner.predict_proba([[0.0, 0.0]]).sum(), 1.0)


def test_declared_classes_have_columns_before_their_first_example():
    learner = StreamClassifier().partial_fit([[0.0], [1.0]], [1, 1], classes=[0, 1, 2])
    assert learner.predict_proba([[0.0]]).shape == (1, 3)
    assert learner.predict([[0.0]]) == [1]


def test_it_does_not_know_what_it_has_not_seen():
    learner = follow(StreamClassifier(), *xor(1000))
    near, far = learner.predict_std([[0.5, 0.5, 0.0]]), learner.predict_std([[9.0, -9.0, 9.0]])
    assert far.mean() > 2 * near.mean()


def test_mixed_records_whose_features_come_and_go():
    rng = np.random.default_rng(0)
    rows = [{"colour": str(rng.choice(["red", "blue"])), "size": rng.normal()} for _ in range(400)]
    labels = [row["colour"] for row in rows]
    learner = follow(StreamClassifier(), rows, labels)
    assert learner.score(rows, labels) > 0.98
    strange = [{"colour": "red", "size": None, "new": 3.0}, {"colour": "blue"}, {}]
    assert learner.predict(strange)[:2].tolist() == ["red", "blue"]
    learner.partial_fit(strange, ["red", "blue", "red"])
    assert learner.score(rows, labels) > 0.98


def test_frames_arrays_and_sparse_rows_are_the_same_rows():
    x, y = xor(200)
    dense = StreamClassifier().fit(x, y).predict_proba(x)
    np.testing.assert_array_equal(StreamClassifier().fit(scipy.sparse.csr_array(x), y).predict_proba(x), dense)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    np.testing.assert_array_equal(StreamClassifier().fit(frame, y).predict_proba(frame), dense)
    mixed = frame.assign(d="same")
    assert StreamClassifier().fit(mixed, y).predict_proba(mixed).shape == (200, 2)


def test_missing_values_are_a_treatment_and_can_inform():
    x, _ = xor(600)
    hole = np.random.default_rng(1).random(600) < 0.5
    x[hole, 0] = np.nan
    assert follow(StreamClassifier(), x, hole).score(x, hole) > 0.97


@pytest.mark.parametrize("wild", [1e-150, 1e12, 1e150])
def test_any_scale(wild):
    x, y = xor(600)
    np.testing.assert_allclose(
        follow(StreamClassifier(), x * wild, y).predict_proba(x * wild),
        follow(StreamClassifier(), x, y).predict_proba(x),
        atol=1e-6,
    )


def test_heavy_tails_and_constant_columns():
    x, y = xor(1500)
    rng = np.random.default_rng(1)
    x = np.column_stack([x, rng.standard_cauchy(1500) ** 3, np.full(1500, 7e9)])
    assert follow(StreamClassifier(), x, y).score(x[750:], y[750:]) > 0.85


@pytest.mark.parametrize(("rows", "columns", "classes"), [(50, 1, 2), (64, 1000, 3), (300, 5, 100)])
def test_shapes_of_streams(rows, columns, classes):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(rows, columns)), rng.integers(0, classes, rows)
    p = follow(StreamClassifier(), x, y).predict_proba(x)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(1), 1.0)


def test_a_rare_class_keeps_its_probability():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1500, 3)), (rng.random(1500) < 0.01).astype(int)
    p = follow(StreamClassifier(), x, y).predict_proba(x)[:, 1]
    assert p.mean() == pytest.approx(0.01, abs=0.02)


def test_its_size_does_not_grow_with_time():
    learner = follow(StreamClassifier(), *xor(200))
    size = sum(array.nbytes for array in state(learner)[0])
    follow(learner, *xor(1000, seed=1))
    assert sum(array.nbytes for array in state(learner)[0]) == size


def test_the_alarm_is_raised_by_a_change_and_seldom_without():
    false, found = 0, 0
    for seed in range(4):
        learner = follow(StreamClassifier(alarms_per=500), *xor(1200, seed=seed))
        false += len(learner.events_)
        assert learner.drift_ > 1 / 500
        follow(learner, *xor(300, seed=seed + 10, switched=True))
        found += any(1200 <= event.at < 1250 for event in learner.events_)
    assert false <= 4 * 1200 / 500
    assert found == 4


def test_the_alarm_goes_on_after_saving_and_costs_the_predictions_nothing(tmp_path):
    x, y = xor(1000)
    y[700:] = 1 - y[700:]
    quiet = follow(StreamClassifier(), x, y)
    whole = follow(StreamClassifier(alarms_per=500), x, y)
    assert_same_state(state(quiet), state(whole))
    follow(StreamClassifier(alarms_per=500), x[:704], y[:704]).save(tmp_path / "a.bgd")
    other = follow(StreamClassifier.load(tmp_path / "a.bgd"), x[704:], y[704:])
    assert other.events_ == whole.events_ != []
    assert other.drift_ == whole.drift_
    with pytest.raises(ValueError, match="alarms_per"):
        _ = quiet.drift_
    with pytest.raises(ValueError, match="100 or more"):
        StreamClassifier(alarms_per=3).partial_fit(x, y)


def test_a_regression_raises_alarms_too():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1200, 2))
    y = x @ [1.0, 2.0] + 0.3 * rng.normal(size=1200)
    y[900:] = -y[900:]
    events = follow(StreamRegressor(alarms_per=1000), x, y).events_
    assert [900 <= event.at < 1000 for event in events] == [True]


def test_a_class_that_returns_after_a_long_time_has_its_column_and_is_soon_learnt_again():
    rng = np.random.default_rng(0)

    def part(labels):
        return np.array(labels)[:, None] * 4.0 + rng.normal(size=(len(labels), 2)), labels

    learner = follow(StreamClassifier(), *part([0, 1, 2] * 100))
    follow(learner, *part([0, 1] * 2000), batch=100)
    assert learner.classes_.tolist() == [0, 1, 2]
    assert learner.predict_proba(part([2] * 50)[0])[:, 2].min() > 0
    follow(learner, *part([2] * 10))
    assert learner.score(*part([0, 1, 2] * 50)) > 0.9


BAD = {
    "infinite": (np.full((4, 3), np.inf), [0, 1, 0, 1], "infinity"),
    "columns": (np.zeros((4, 2)), [0, 1, 0, 1], "expecting 3 features"),
    "empty": (np.zeros((0, 3)), [], "0 sample"),
    "labels of another type": (np.zeros((2, 3)), ["0", "1"], "of type str"),
    "NaN label": (np.zeros((2, 3)), [0.0, np.nan], "NaN"),
    "no label": (np.zeros((2, 3)), None, "requires y"),
    "lengths": (np.zeros((2, 3)), [1], "inconsistent"),
    "records": ([{"a": 1.0}], [1], "arrays"),
    "text for numbers": (np.array([["a", "b", "c"]]), [1], "arrays"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_and_changes_nothing(name):
    x, y, message = BAD[name]
    learner = follow(StreamClassifier(), *xor(100))
    before = state(learner)
    with pytest.raises(ValueError, match=message):
        learner.partial_fit(x, y)
    assert_same_state(state(learner), before)


BAD_NUMBERS = {
    "infinite": (np.full((4, 3), -np.inf), np.zeros(4), "infinity"),
    "columns": (np.zeros((4, 2)), np.zeros(4), "expecting 3 features"),
    "empty": (np.zeros((0, 3)), [], "0 sample"),
    "infinite target": (np.zeros((2, 3)), [0.0, np.inf], "infinity"),
    "NaN target": (np.zeros((2, 3)), [0.0, np.nan], "NaN"),
    "text": (np.zeros((2, 3)), ["a", "b"], "could not convert"),
    "no target": (np.zeros((2, 3)), None, "requires y"),
    "outputs": (np.zeros((2, 3)), np.zeros((2, 2)), "2 outputs"),
    "records": ([{"a": 1.0}], [1.0], "arrays"),
}


@pytest.mark.parametrize("name", BAD_NUMBERS)
def test_a_regression_refuses_bad_input_and_does_not_change(name):
    x, y, message = BAD_NUMBERS[name]
    learner = follow(StreamRegressor(alarms_per=100), *xor(100))
    before = state(learner), learner.drift_
    with pytest.raises(ValueError, match=message):
        learner.partial_fit(x, y)
    assert_same_state(state(learner), before[0])
    assert learner.drift_ == before[1]


@pytest.mark.parametrize("kind", [StreamClassifier, StreamRegressor])
def test_bad_first_batches_leave_a_learner_unfitted(kind):
    learner = kind()
    for x, y in ((np.full((2, 3), np.inf), [0, 1]), (np.zeros((0, 3)), []), (np.zeros((2, 3)), [1])):
        with pytest.raises(ValueError, match=r"infinity|0 sample|inconsistent"):
            learner.partial_fit(x, y)
        with pytest.raises(ValueError, match="not fitted"):
            learner.predict(np.zeros((1, 3)))
    assert follow(learner, *xor(64)).predict(np.zeros((1, 3))).shape == (1,)


@pytest.mark.parametrize("weights", [[-1.0, 1.0], [np.nan, 1.0], [0.0, 0.0], [1.0]])
def test_bad_weights_are_refused_and_change_nothing(weights):
    learner = follow(StreamClassifier(), *xor(100))
    before = state(learner)
    with pytest.raises(ValueError, match=r"[Ww]eight"):
        learner.partial_fit(np.zeros((2, 3)), [0, 1], sample_weight=weights)
    assert_same_state(state(learner), before)


def test_rows_of_weight_zero_are_not_there():
    x, y = xor(100)
    extra, labels = np.concatenate([x, x + 9.0]), np.concatenate([y, y + 5])
    weights = np.repeat([1.0, 0.0], 100)
    one = StreamClassifier().partial_fit(x, y)
    assert_same_state(state(StreamClassifier().partial_fit(extra, labels, sample_weight=weights)), state(one))


@pytest.mark.parametrize("kind", [StreamClassifier, StreamRegressor])
def test_saved_and_loaded_it_goes_on_bit_for_bit(kind, tmp_path):
    x, y = xor(200)
    learner = follow(kind(random_state=3), x, y)
    learner.save(tmp_path / "a.bgd")
    other = kind.load(tmp_path / "a.bgd")
    for one in (learner, other):
        follow(one, *xor(200, seed=1))
    assert_same_state(state(other), state(learner))
    np.testing.assert_array_equal(other.predict_std(x), learner.predict_std(x))
    np.testing.assert_array_equal(other.predict(x), learner.predict(x))


def test_records_are_saved_too_and_damage_is_noticed(tmp_path):
    rows, labels = [{"a": 1.0, "b": "x"}, {"a": None, "c": "y"}] * 20, ["p", "q"] * 20
    learner = StreamClassifier().fit(rows, labels)
    learner.save(path := tmp_path / "a.bgd")
    np.testing.assert_array_equal(StreamClassifier.load(path).predict_proba(rows), learner.predict_proba(rows))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(BGDError, match="damaged"):
        StreamClassifier.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(BGDError, match="not a learner"):
        StreamClassifier.load(path)


def test_copies_and_clones():
    learner = follow(StreamClassifier(random_state=1), *xor(100))
    twin = copy.deepcopy(learner)
    before = state(learner)
    follow(twin, *xor(100, seed=1))
    assert_same_state(state(learner), before)
    assert not hasattr(clone(learner), "classes_")


def test_equal_seeds_give_equal_learners_and_predicting_changes_nothing():
    x, y = xor(300)
    quiet, asked = StreamClassifier(), StreamClassifier()
    for at in range(0, 300, 20):
        part = slice(at, at + 20)
        if at:
            asked.predict_proba(x[part])
            asked.predict_std(x[:7])
        quiet.partial_fit(x[part], y[part])
        asked.partial_fit(x[part], y[part])
    assert_same_state(state(quiet), state(asked))


def test_a_failed_fit_leaves_the_learner_as_it_was():
    learner = follow(StreamClassifier(), *xor(100))
    before = state(learner)
    with pytest.raises(ValueError, match="infinity"):
        learner.fit(np.full((2, 3), np.inf), [0, 1])
    assert_same_state(state(learner), before)


def friedman(rows, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((rows, 5))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, 1000 + 50 * (y + rng.normal(size=rows))


def test_regression_with_unknown_noise_and_honest_stds():
    learner = follow(StreamRegressor(), *friedman(2000))
    x, y = friedman(1000, seed=1)
    assert learner.score(x, y) > 0.9
    inside = np.abs(y - learner.predict(x)) < 2 * learner.predict_std(x)
    assert 0.9 < inside.mean() <= 1.0
    assert np.all(learner.predict_std(x, kind="epistemic") < learner.predict_std(x))
    far = learner.predict_std(x + 10.0, kind="epistemic")
    assert far.mean() > 2 * learner.predict_std(x, kind="epistemic").mean()


def test_several_outputs():
    x, y = friedman(1000)
    learner = make_pipeline(StandardScaler(), StreamRegressor()).fit(x, np.column_stack([y, -y]))
    assert learner.score(x, np.column_stack([y, -y])) > 0.9
    np.testing.assert_allclose(learner.predict(x) @ [1.0, 1.0], 0.0, atol=1e-6 * np.abs(y).max())


def test_regression_does_not_depend_on_the_units():
    x, y = friedman(300)
    one, other = follow(StreamRegressor(), x, y), follow(StreamRegressor(), x, 1e6 * y - 1e9)
    np.testing.assert_allclose(1e6 * one.predict(x) - 1e9, other.predict(x), rtol=1e-6)
    np.testing.assert_allclose(1e6 * one.predict_std(x), other.predict_std(x), rtol=1e-6)


def test_regression_of_a_constant_and_changed_outputs():
    learner = StreamRegressor().partial_fit([[0.0], [1.0]], [5.0, 5.0])
    np.testing.assert_allclose(learner.predict([[0.5]]), 5.0)
    with pytest.raises(ValueError, match="2 outputs"):
        learner.partial_fit([[0.0]], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="NaN"):
        learner.partial_fit([[0.0]], [np.nan])
