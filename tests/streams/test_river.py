"""The stream learners as river estimators."""

import pytest

pytest.importorskip("river")

import copy
import warnings

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
