"""Evaluations on training images, and stds between the ends of tasks."""

import json
import math

import pytest
import torch
from small_runs import BGD, DISCRETE, small

from bgd.runs import run
from bgd.runs.build import build_learner, build_stream
from bgd.runs.folder import read_result, write_json
from bgd.runs.options import Options

TEST = {"evaluations": 4, "samples": 2, "curve": 7, "train": 120, "stds": 5}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return run(small("bgd", DISCRETE, "domain", BGD, test=TEST), tmp_path_factory.mktemp("run"))


def test_fits_are_measured_with_the_evaluations(result):
    assert [fit.iteration for fit in result.fits] == sorted({e.iteration for e in result.evaluations})
    assert all(len(fit.accuracy) == len(fit.loss) == 3 for fit in result.fits)
    assert result.fits[-1].loss[-1] < 0.9 * result.fits[0].loss[-1]


def test_fits_are_accuracies_on_the_first_training_images(tmp_path):
    config = small("sgd", DISCRETE, "task", {"lr": 0.1}, test=TEST)
    kept = run(config, tmp_path / "one", Options(keep=True))
    stream = build_stream(config)
    weights = torch.load(next((tmp_path / "one").glob("*.pt")), weights_only=True)["learner"]["net"]
    learner = build_learner(config, stream)
    learner.net.load_state_dict(weights)
    for task in range(3):
        x, y, _ = next(iter(stream.train_batches(task, 120)))
        right = (learner.predict(x, task).argmax(1) == y).double().mean().item()
        assert kept.fits[-1].accuracy[task] == pytest.approx(right)


def test_stds_are_recorded_between_the_ends_of_tasks(result):
    # three tasks of twelve iterations, and five histograms evenly over them
    assert [(h.iteration, h.after) for h in result.stds] == [
        (0, "start"),
        (7, "iteration 7"),
        (12, result.task_names[0]),
        (14, "iteration 14"),
        (21, "iteration 21"),
        (24, result.task_names[1]),
        (28, "iteration 28"),
        (36, result.task_names[2]),
    ]


def test_measurements_do_not_change_training(result, tmp_path):
    plain = run(small("bgd", DISCRETE, "domain", BGD), tmp_path)
    assert not plain.fits
    assert len(plain.stds) == 4
    assert plain.R == result.R


def test_the_result_of_a_diverged_network_can_be_read(result, tmp_path):
    diverged = result.model_copy(
        update={"fits": [result.fits[0].model_copy(update={"loss": [math.nan, math.inf, 1.0]})]}
    )
    write_json(tmp_path / "result.json", diverged)
    json.loads((tmp_path / "result.json").read_text(), parse_constant=pytest.fail)  # JSON has no NaN
    loss = read_result(tmp_path).fits[0].loss
    assert math.isnan(loss[0])
    assert loss[1:] == [math.inf, 1.0]
