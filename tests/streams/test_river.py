"""The stream learners as river estimators."""

import pytest

pytest.importorskip("river")

import copy
import warnings

import pandas as pd
from river import checks, datasets, evaluate, metrics

from bgd.streams.river import StreamClassifier, StreamRegressor


@pytest.mark.parametrize("learner", [StreamClassifier(), StreamRegressor()], ids=lambda learner: type(learner).__name__)
def test_river_accepts_it(learner):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks.check_estimator(learner)


def test_it_learns_phishing():
    accuracy = evaluate.progressive_val_score(datasets.Phishing().take(400), StreamClassifier(), metrics.Accuracy())
    assert accuracy.get() > 0.8


def test_bad_examples_change_nothing():
    learner = StreamClassifier()
    for x, y in datasets.Phishing().take(20):
        learner.learn_one(x, y)
    before = copy.deepcopy(learner)
    for bad, label in ((dict.fromkeys(x, float("inf")), True), (x, None), (x, "yes")):
        with pytest.raises(ValueError, match=r"infinity|no label|of type"):
            learner.learn_one(bad, label)
    assert learner.predict_proba_one(x) == before.predict_proba_one(x)
    learner.learn_one(x, y)
    before.learn_one(x, y)
    assert learner.predict_proba_one(x) == before.predict_proba_one(x)


def test_bad_numbers_change_nothing():
    learner = StreamRegressor()
    for a in range(20):
        learner.learn_one({"a": float(a)}, 3.0 * a)
    before = copy.deepcopy(learner)
    for row, y in (({"a": float("-inf")}, 1.0), ({"a": 1.0}, float("nan")), ({"a": 1.0}, "much"), ({"a": 1.0}, None)):
        with pytest.raises(ValueError, match=r"infinity|no target"):
            learner.learn_one(row, y)
    assert learner.predict_one({"a": 5.0}) == before.predict_one({"a": 5.0})
    assert isinstance(learner.predict_one({"b": 5.0, "a": None}), float)  # unknown and missing features are a treatment


@pytest.mark.parametrize("kind", [StreamClassifier, StreamRegressor])
def test_a_frame_with_a_bad_row_is_refused_whole_and_an_empty_one_is_nothing(kind):
    learner = kind()
    learner.learn_many(pd.DataFrame({"a": [0.0, 1.0] * 8}), pd.Series([0, 1] * 8))
    before = copy.deepcopy(learner)
    with pytest.raises(ValueError, match="infinity"):
        learner.learn_many(pd.DataFrame({"a": [5.0, float("inf")]}), pd.Series([0, 1]))
    with pytest.raises(ValueError, match="inconsistent"):
        learner.learn_many(pd.DataFrame({"a": [5.0]}), pd.Series([0, 1]))
    learner.learn_many(pd.DataFrame({"a": []}), pd.Series([], dtype=int))
    assert learner.predict_one({"a": 1.0}) == before.predict_one({"a": 1.0})
    assert learner._mixture.seen == before._mixture.seen == 16
