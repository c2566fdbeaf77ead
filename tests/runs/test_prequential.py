"""Runs that predict, then learn: what they measure is what a plain loop measures, and errors come first."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss
from small_runs import PREQUENTIAL, RUNS, TABLE, small

from bgd.runs import RunError, run
from bgd.runs.build import build_learner, build_stream
from bgd.runs.calibration import Tests
from bgd.runs.config import RunConfig
from bgd.runs.validation import validate
from bgd.streams.drift import DriftAlarm

AGNOSTIC = "continuous task-agnostic"
ADAM = small("adam", PREQUENTIAL, AGNOSTIC, {"lr": 0.01}, **TABLE)


def test_a_run_measures_what_a_plain_loop_measures(tmp_path):
    result = run(ADAM, tmp_path)
    stream = build_stream(ADAM)
    learner = build_learner(ADAM, stream)
    p, y = [], []
    for x, labels, _ in stream:
        p.append(learner.predict(x).double().softmax(1))
        y.append(labels)
        learner.observe(x, labels)
    p, y = torch.cat(p).numpy(), torch.cat(y).numpy()
    assert result.average_accuracy == result.R[0][0] == accuracy_score(y, p.argmax(1))
    assert result.prequential.log_loss == pytest.approx(log_loss(y, np.clip(p, 1e-6, 1)), rel=1e-6)
    assert result.prequential.examples == sum(bin[0] for bin in result.prequential.bins) == 400
    surprise = -np.log(np.clip(p[np.arange(400), y], 1e-6, None))
    assert len(result.prequential.alarms) == len(DriftAlarm(100).update_many(surprise))
    windows = result.evaluations
    ends = np.array([0, *(16 * window.iteration for window in windows)]).clip(max=400)
    right = p.argmax(1) == y
    expected = [right[a:b].mean() for a, b in itertools.pairwise(ends)]
    np.testing.assert_allclose([window.accuracy[0] for window in windows], expected)
    assert len(windows) == 6


def test_the_first_prediction_knows_nothing(tmp_path):
    """One batch: whatever was learnt from it must not count."""
    config = small("adam", PREQUENTIAL | {"batch_size": 400}, AGNOSTIC, {"lr": 0.5}, **TABLE)
    assert run(config, tmp_path).average_accuracy < 0.75


def test_calibration_error_of_known_probabilities():
    tests = Tests()
    p = torch.tensor([[0.9, 0.1]]).repeat(100, 1)
    tests.add(p, torch.tensor([0] * 70 + [1] * 30))
    tests.add(torch.tensor([[0.55, 0.45]]).repeat(100, 1), torch.tensor([0] * 55 + [1] * 45))
    assert tests.calibration_error == pytest.approx(0.5 * 0.2 + 0.5 * 0.0)


def test_an_impossible_label_costs_a_finite_number():
    tests = Tests()
    tests.add(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
    assert tests.log_loss == pytest.approx(-np.log(1e-6))


def test_own_files_and_functions(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "sky": ["grey", "blue"] * 30})
    frame["rain"] = np.where(frame.a > 0, "yes", "no")
    frame.to_csv(tmp_path / "own.csv", index=False)
    (tmp_path / "own_frame.py").write_text(
        f"import pandas\ndef load(): return pandas.read_csv({str(tmp_path / 'own.csv')!r})"
    )
    monkeypatch.syspath_prepend(tmp_path)
    results = []
    for name in (str(tmp_path / "own.csv"), "own_frame:load"):
        config = small("sgd", PREQUENTIAL, AGNOSTIC, data={"name": name, "target": "rain"})
        results.append(run(config, tmp_path / str(len(results))))
    one, other = results
    assert one.R == other.R
    assert one.machine.versions["data"] == other.machine.versions["data"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stream": {"kind": "continuous"}}, "needs a stream of kind 'prequential'"),
        ({"data": "digits"}, "does not fit a stream of kind 'prequential'"),
        ({"scenario": "domain"}, "needs a stream of kind discrete"),
        ({"stream": PREQUENTIAL | {"augment": {"crop": 2}}}, "no mix of images"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_runs(changes, message):
    setup = {"data": "river-phishing", "stream": PREQUENTIAL, "scenario": AGNOSTIC} | changes
    with pytest.raises(RunError, match=message):
        validate(RunConfig(method="sgd", setup=setup))


def test_methods_that_need_all_data_at_once_are_refused():
    with pytest.raises(RunError, match="learns from all data at once"):
        validate(RUNS["bgd, prequential"].model_copy(update={"method": "offline"}))


def test_an_unknown_model_of_river_is_refused():
    settings = {"model": "forest.RandomForest"}
    with pytest.raises(RunError, match="river has no such class"):
        validate(RUNS["river, prequential"].model_copy(update={"settings": settings}))
