"""What a run measures, against values computed otherwise."""

import json

import numpy as np
import pytest
import torch
from small_runs import RUNS, small

from bgd.methods import create
from bgd.runs import Options, metrics, run
from bgd.runs.build import build_learner, build_stream
from bgd.runs.environment import describe, join_versions
from bgd.runs.evaluate import score, stds
from bgd.runs.result import Machine
from bgd.scenarios import Batch, scenario, shared_heads


def plain_loop(config):
    """The run without the machinery around it, which must not change it."""
    stream = build_stream(config)
    learner = build_learner(config, stream)
    losses, R = [], []
    for i in range(len(stream)):
        losses.append(learner.observe(*stream.batch(i)))
        if stream.reveals_boundary_at(i):
            task = stream.stages.index(i + 1)
            learner.end_task(stream.train_batches(task, config.setup.stream.batch_size))
        if i + 1 in stream.stages:
            row = []
            for t in range(len(stream.tasks)):
                batches = list(stream.test_batches(t))
                scores = torch.cat([learner.predict(b.x, b.task) for b in batches])
                row.append(metrics.accuracy(scores, torch.cat([b.y for b in batches])))
            R.append(row)
    return losses, R, learner


@pytest.mark.parametrize("name", ["bgd, continuous", "online-ewc, discrete", "mas, drifting", "offline"])
def test_equals_a_plain_loop(name, tmp_path):
    losses, R, learner = plain_loop(RUNS[name])
    result = run(RUNS[name], tmp_path)
    ends = [point.iteration for point in result.curve]
    assert ends == [len(losses) * (k + 1) // 7 for k in range(7)]
    windows = [losses[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    assert [point.loss for point in result.curve] == [sum(window) / len(window) for window in windows]
    assert result.R == R
    assert result.average_accuracy == metrics.average_accuracy(R)
    final = stds(learner)
    if final is not None:
        assert result.stds[-1].largest == float(final.max())
        assert sum(result.stds[-1].counts) == len(final)


def test_the_result_is_complete(tmp_path):
    result = run(RUNS["bgd, discrete"], tmp_path)
    assert [e.iteration for e in result.evaluations if e.stage is not None] == result.stages == [12, 24, 36]
    assert [e.iteration for e in result.evaluations] == [0, 9, 12, 18, 24, 27, 36]
    assert [e.seen for e in result.evaluations] == [0, 1, 1, 2, 2, 3, 3]
    assert [h.after for h in result.stds] == ["start", *result.task_names]
    assert set(result.by_inference) == {"map", "mc", "vote", "mean_softmax"}
    assert set(result.metrics) == {"forgetting", "backward_transfer", "forward_transfer", "anytime_accuracy"}
    assert result.metrics["forgetting"] == metrics.forgetting(result.R)
    even = [e for e in result.evaluations if e.iteration in (9, 18, 27, 36)]
    expected = np.mean([np.mean(e.accuracy[: e.seen]) for e in even])
    assert result.metrics["anytime_accuracy"] == pytest.approx(expected)
    on_disk = json.loads((tmp_path / "result.json").read_text())
    assert "machine" not in on_disk
    assert (tmp_path / "result.json").stat().st_size < 40_000
    environment = json.loads((tmp_path / "environment.json").read_text())
    assert environment["versions"]["torch"] == torch.__version__
    assert environment["seconds"] > 0


def test_accuracy_is_measured_by_the_configured_inference(tmp_path):
    result = run(RUNS["vcl, discrete"], tmp_path)
    assert result.average_accuracy == pytest.approx(result.by_inference["mc"])
    assert result.evaluations[2].by_inference.keys() == {"map", "mc"}  # the others only at the end
    assert result.evaluations[2].accuracy == result.evaluations[2].by_inference["mc"]


def test_inference_by_known_samples():
    """Three sampled networks of a posterior with known scores: mc, vote and mean softmax differ as they should."""

    class Known:
        def predict(self, x, task=None):
            return torch.tensor([[2.0, 1.0]]).repeat(len(x), 1)

        def predict_samples(self, x, samples, task=None):
            scores = torch.tensor([[0.1, 0.0], [0.1, 0.0], [0.0, 9.0]])  # two weak votes for 0, one strong for 1
            return scores[:, None].repeat(1, len(x), 1)

    batch = Batch(torch.zeros(4, 1), torch.zeros(4, dtype=torch.int64))
    accuracy, loss = score(Known(), [batch, batch], ["map", "mc", "vote", "mean_softmax"], samples=3)
    assert accuracy == {"map": 1.0, "mc": pytest.approx(2 / 3), "vote": 1.0, "mean_softmax": 0.0}
    assert loss == pytest.approx(np.log1p(np.exp(-1)))


def test_calibration_is_measured_at_the_end_over_all_tasks(tmp_path):
    _, _, learner = plain_loop(RUNS["bgd, discrete"])
    result = run(RUNS["bgd, discrete"], tmp_path)
    stream = build_stream(RUNS["bgd, discrete"])
    batches = [batch for task in range(len(stream.tasks)) for batch in stream.test_batches(task)]
    with torch.no_grad():
        p = torch.cat([learner.predict(b.x, b.task) for b in batches]).double().softmax(1)
    confidence, labels = p.max(1)
    right = (labels == torch.cat([b.y for b in batches])).double()
    bins = (confidence * 15).ceil()
    gaps = [float((right - confidence)[bins == b].sum().abs()) for b in range(1, 16)]
    assert result.evaluations[-1].calibration_error == pytest.approx(sum(gaps) / len(right), abs=1e-6)
    assert {e.calibration_error for e in result.evaluations[:-1]} == {None}


def test_measuring_does_not_change_training(tmp_path):
    often = RUNS["bgd, continuous"]
    never = often.model_copy(
        update={
            "setup": often.setup.model_copy(update={"test": often.setup.test.model_copy(update={"evaluations": 0})})
        }
    )
    assert run(often, tmp_path / "a").R == run(never, tmp_path / "b").R


def test_seeds_change_the_result(tmp_path):
    config = RUNS["online-ewc, discrete"]
    curves = {run(config.model_copy(update={"seed": s}), tmp_path / str(s)).curve[0].loss for s in (1, 2, 3)}
    assert len(curves) == 3


@pytest.mark.parametrize("iterations", [8, 6])  # the optimizer's own first check is at step 7
def test_a_collapsed_posterior_is_part_of_the_result(tmp_path, iterations):
    few = {"kind": "continuous", "iterations": iterations, "batch_size": 50}
    settings = {"std_init": 0.5, "estimator": "shared", "mc_samples": 1, "std_max": None, "max_move": None}
    result = run(small("bgd", few, "continuous task-agnostic", settings), tmp_path)
    assert len(result.warnings) == 1
    assert "collapsed" in result.warnings[0]


def test_a_learner_without_a_posterior_has_no_stds():
    assert stds(create("sgd", torch.nn.Linear(2, 2), shared_heads(1, 2), scenario("domain"))) is None


def test_the_recorded_command_is_quoted(monkeypatch):
    monkeypatch.setattr("sys.argv", ["/usr/bin/bgd", "run", "mc-samples", "--row", "K = 2, capped"])
    assert describe(1).command == "bgd run mc-samples --row 'K = 2, capped'"


def test_a_run_resumed_elsewhere_records_both_versions(tmp_path):
    class Stop(Exception):
        pass

    def stop(progress):
        if progress.iteration >= 20:
            raise Stop

    config = RUNS["bgd, drifting"]
    with pytest.raises(Stop):
        run(config, tmp_path, Options(threads=2, checkpoint_seconds=0), stop)
    path = tmp_path / "environment.json"
    path.write_text(path.read_text().replace(f'"{torch.__version__}"', '"1.0"'))
    versions = run(config, tmp_path).machine.versions
    assert versions["torch"] == f"1.0, then {torch.__version__}"
    assert versions["threads"] == "2, then 1"
    assert "threads" not in run(config, tmp_path / "other").machine.versions


@pytest.mark.parametrize(("before", "now"), [(12, 2), (2, 12), (11, 1)])
def test_versions_that_end_alike_are_told_apart(before, now):
    machine = Machine(versions={"torch": "2.1"})
    first, second = (machine.model_copy(update={"threads": threads}) for threads in (before, now))
    assert join_versions(first, second)["threads"] == f"{before}, then {now}"
    assert "threads" not in join_versions(first, first)
