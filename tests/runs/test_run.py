"""What a run measures, against answers known otherwise."""

import json

import numpy as np
import pytest
import torch
from small_runs import DATA, DISCRETE, DRIFTING, RUNS, small

from bgd.methods import create
from bgd.methods.bgd import BGDLearner
from bgd.methods.common.base import generator_for
from bgd.runs import Options, RunConfig, RunError, metrics, run
from bgd.runs.build import build_learner, build_stream, check
from bgd.runs.environment import describe
from bgd.runs.evaluate import score, stds
from bgd.runs.result import Machine
from bgd.runs.run import _versions
from bgd.scenarios import Batch, scenario, shared_heads


def by_hand(config):
    """The run as a plain loop: what the machinery around it must not change."""
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
    losses, R, learner = by_hand(RUNS[name])
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


def test_the_result_is_whole(tmp_path):
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


def test_the_inference_that_the_run_asks_for_decides(tmp_path):
    result = run(RUNS["vcl, discrete"], tmp_path)
    assert result.average_accuracy == pytest.approx(result.by_inference["mc"])
    assert result.evaluations[2].by_inference.keys() == {"map", "mc"}  # the others only at the end
    assert result.evaluations[2].accuracy == result.evaluations[2].by_inference["mc"]


def test_inference_by_known_samples():
    """Three drawn networks of a posterior with known scores: mc, vote and mean softmax differ as they should."""

    class Known:
        def predict(self, x, task=None):
            return torch.tensor([[2.0, 1.0]]).repeat(len(x), 1)

        def predict_samples(self, x, samples, task=None):
            drawn = torch.tensor([[0.1, 0.0], [0.1, 0.0], [0.0, 9.0]])  # two weak votes for 0, one strong for 1
            return drawn[:, None].repeat(1, len(x), 1)

    batch = Batch(torch.zeros(4, 1), torch.zeros(4, dtype=torch.int64))
    accuracy, loss = score(Known(), [batch, batch], ["map", "mc", "vote", "mean_softmax"], samples=3)
    assert accuracy == {"map": 1.0, "mc": pytest.approx(2 / 3), "vote": 1.0, "mean_softmax": 0.0}
    assert loss == pytest.approx(np.log1p(np.exp(-1)))


def test_measuring_does_not_change_training(tmp_path):
    often = RUNS["bgd, continuous"]
    never = often.model_copy(
        update={
            "setup": often.setup.model_copy(update={"test": often.setup.test.model_copy(update={"evaluations": 0})})
        }
    )
    assert run(often, tmp_path / "a").R == run(never, tmp_path / "b").R


def test_neither_global_randomness_nor_threads_are_touched(tmp_path):
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    run(RUNS["bgd, discrete"], tmp_path, Options(threads=2))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_seeds_make_a_difference(tmp_path):
    config = RUNS["online-ewc, discrete"]
    curves = {run(config.model_copy(update={"seed": s}), tmp_path / str(s)).curve[0].loss for s in (1, 2, 3)}
    assert len(curves) == 3


def test_a_collapsed_posterior_is_part_of_the_result(tmp_path):
    few = {"kind": "continuous", "iterations": 8, "batch_size": 50}
    settings = {"std_init": 0.5, "mc_samples": 1, "std_max": None}
    result = run(small("bgd", few, "continuous task-agnostic", settings), tmp_path)
    assert len(result.warnings) == 1
    assert "collapsed" in result.warnings[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"method": "bdg"}, "did you mean 'bgd'"),
        ({"settings": {"std_int": 1}}, "did you mean 'std_init'"),
        ({"settings": {"std_init": -1.0}}, "std_init"),
        ({"settings": {"lr": "fast"}}, "fast"),
        ({"settings": {"test_samples": 4}}, "test.inference"),
        ({"method": "ewc", "settings": {"fisher_over": "batches"}}, "choose one of sample, batch"),
        ({"method": "online-ewc", "settings": {"fisher_over": "batch", "fisher_label": "exact"}}, "per sample"),
        ({"method": "mas", "settings": {"importance_over": "Sample"}}, "choose one of sample, batch"),
        ({"setup": {"scenario": "continuous task-agnostic"}}, "needs a stream of kind continuous or drifting"),
        ({"setup": {"scenario": "tasks"}}, "choose one of task, domain"),
        ({"method": "ewc", "setup": {"scenario": "discrete task-agnostic"}}, "needs BOUNDARIES"),
        ({"setup": {"tasks": {"cut": "rotate"}}}, "tasks.degrees is empty"),
        ({"device": "abacus"}, "device 'abacus' cannot be used here"),
        pytest.param(
            {"device": "cuda"},
            "device 'cuda' cannot be used here",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
    ],
)
def test_what_cannot_run_is_said_before_anything_starts(changes, said, tmp_path):
    config = RunConfig(**{"method": "bgd", "row": "Mine", **changes})
    with pytest.raises(RunError, match=said) as caught:
        check(config)
    assert str(caught.value).startswith("Mine, seed 0: ")
    with pytest.raises(RunError):
        run(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_learner_without_a_posterior_has_no_stds():
    assert stds(create("sgd", torch.nn.Linear(2, 2), shared_heads(1, 2), scenario("domain"))) is None


def test_rotated_tasks_and_a_single_one(tmp_path):
    turned = small("sgd", {"epochs": 1}, "domain", tasks={"cut": "rotate", "degrees": [0, 45]})
    assert run(turned, tmp_path / "a").task_names == ["0 degrees", "45 degrees"]
    single = small("sgd", {"epochs": 1}, "domain", tasks={"cut": "whole"})
    assert run(single, tmp_path / "b").metrics.keys() == {"anytime_accuracy"}


def test_padding_and_limits_reach_the_network():
    config = small("sgd", {"epochs": 1}, "domain", data=DATA | {"pad": 2})
    assert build_stream(config).tasks.shape == (1, 12, 12)
    assert len(build_stream(config).tasks[0].train) == 300


def test_the_command_of_a_run_can_be_pasted(monkeypatch):
    monkeypatch.setattr("sys.argv", ["/usr/bin/bgd", "run", "mc-samples", "--methods", "K = 2, capped"])
    assert describe(1).command == "bgd run mc-samples --methods 'K = 2, capped'"


def test_offline_on_a_drift_sees_all_moments_at_once():
    drift, joint = (build_stream(small(m, DRIFTING, "continuous task-agnostic")) for m in ("sgd", "offline"))
    assert joint.tasks.names == drift.tasks.names
    one_epoch = range(-(-300 * DRIFTING["moments"] // DRIFTING["batch_size"]))  # 40 batches of 16 are less than one
    assert len(joint) == len(one_epoch)
    shown = torch.cat([joint.batch(i).x for i in one_epoch]).flatten(1)
    everything = torch.cat([b.x for t in range(3) for b in drift.train_batches(t, 100)]).flatten(1)
    torch.testing.assert_close(shown.sum(1).sort().values, everything.sum(1).sort().values)


def test_a_drift_has_neighbouring_pixels():
    check(small("sgd", DRIFTING | {"augment": {"crop": 1}}, "continuous task-agnostic"))


@pytest.fixture
def changed(monkeypatch):
    """Another default, as a later version may have it."""
    return lambda: monkeypatch.setitem(BGDLearner.__init__.__kwdefaults__, "mc_samples", 3)


@pytest.mark.parametrize("done", [True, False])
def test_a_run_of_another_default_is_neither_taken_nor_gone_on_with(done, changed, tmp_path):
    config = small("bgd", DRIFTING, "continuous task-agnostic", {"std_init": 0.05})
    run(config, tmp_path)
    if not done:
        (tmp_path / "result.json").unlink()
    changed()
    with pytest.raises(RunError, match=r"the default of mc_samples has changed since .*: remove that folder"):
        run(config, tmp_path)


def test_a_run_resumed_elsewhere_says_so(tmp_path):
    class Stop(Exception):
        pass

    def stop(place):
        if place.done >= 20:
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
def test_a_number_that_ends_like_another_is_another(before, now):
    machine = Machine(versions={"torch": "2.1"})
    first, second = (machine.model_copy(update={"threads": threads}) for threads in (before, now))
    assert _versions(first, second)["threads"] == f"{before}, then {now}"
    assert "threads" not in _versions(first, first)


def test_noise_does_not_begin_where_the_weights_did():
    config = small("bbb", DISCRETE, "domain")
    stream = build_stream(config)
    learner = build_learner(config, stream)
    for p in learner.net.parameters():
        if p.ndim > 1:
            eps = torch.randn(p.shape, generator=generator_for(learner.net, config.seed))
            assert abs(torch.corrcoef(torch.stack([p.detach().flatten(), eps.flatten()]))[0, 1]) < 0.2


@pytest.mark.parametrize("moments", [2, 5])
def test_the_moments_at_which_a_drift_is_tested_are_no_more_data(moments):
    config = RunConfig(
        method="bbb",
        setup={
            "scenario": "continuous task-agnostic",
            "data": {"name": "digits", "train": 200, "test": 50},
            "stream": {"kind": "drifting", "iterations": 20, "moments": moments},
        },
    )
    assert build_learner(config, build_stream(config)).train_size == 200
