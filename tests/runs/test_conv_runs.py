"""Convolutional nets, mixes of data sets and augmentation, as a configuration declares them."""

import json
import os
import signal

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from bgd.runs import Interrupted, Options, RunConfig, RunError, run
from bgd.runs.build import build_learner, build_mix, build_net, build_stream, build_tasks, check, note_on
from bgd.runs.config import DataConfig, NetConfig, Setup
from bgd.runs.randomness import own_randomness

SMALL = {"name": "digits", "shape": [3, 16, 16], "train": 40, "test": 20}
BGD = {"std_init": 0.02, "mc_samples": 2}


def conv_run(method, net, settings=None, **setup):
    ground = {
        "data": SMALL,
        "net": {"name": net},
        "tasks": {"cut": "split", "count": 2},
        "scenario": "task",
        "stream": {"batch_size": 8, "augment": {"crop": 2, "flip": True}},
        "test": {"samples": 2, "curve": 3},
    }
    return RunConfig(method=method, seed=5, settings=settings or {}, setup=ground | setup)


RGB32 = SMALL | {"shape": [3, 32, 32]}
RUNS = {
    "bgd, zenke": conv_run("bgd", "zenke", BGD),
    "bgd in a loop, zenke": conv_run("bgd", "zenke", BGD | {"batched": False}),
    "sgd, zenke": conv_run("sgd", "zenke"),
    "si, zenke": conv_run("si", "zenke"),
    "sgd, vgg16-bn": conv_run("sgd", "vgg16-bn", data=RGB32 | {"train": 16}, stream={"batch_size": 4}),
}


def same_files(a, b):
    return all((a / name).read_bytes() == (b / name).read_bytes() for name in ("result.json", "metrics.jsonl"))


@pytest.mark.parametrize("name", RUNS)
def test_stopped_at_every_iteration(name, tmp_path):
    """Dropout and running statistics too go on where they were, whatever the caller did to torch's generator."""
    run(RUNS[name], tmp_path / "whole")
    sessions, stopped = 0, 0

    def stop(*_):
        nonlocal stopped
        if stopped < sessions:  # once in each session: a second signal would mean "at once"
            stopped = sessions
            os.kill(os.getpid(), signal.SIGINT)

    while True:
        sessions += 1
        with torch.random.fork_rng():
            torch.manual_seed(sessions)
            before = torch.get_rng_state()
            try:
                run(RUNS[name], tmp_path / "parts", Options(checkpoint_seconds=0), report=stop)
                break
            except Interrupted:
                assert torch.equal(torch.get_rng_state(), before)
    assert sessions >= 4
    assert same_files(tmp_path / "whole", tmp_path / "parts")


def test_dropout_is_at_work_and_comes_from_the_seed(tmp_path):
    """The run equals a plain loop under the run's own randomness, and differs from one under another."""
    config = RUNS["sgd, zenke"]

    def losses(seed):
        with own_randomness(seed):
            stream = build_stream(config)
            learner = build_learner(config, stream)
            return [learner.observe(*batch) for batch in stream]

    points = [point.loss for point in run(config, tmp_path).curve]
    ours = losses(config.seed)
    ends = [len(ours) * (k + 1) // 3 for k in range(3)]
    assert points == [np.mean(ours[a:b]) for a, b in zip([0, *ends], ends, strict=False)]
    assert losses(config.seed + 1) != ours


def test_randomness_comes_back_after_an_error(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    before = torch.get_rng_state()

    def fail():
        assert torch.backends.cudnn.deterministic
        assert not torch.backends.cudnn.benchmark
        torch.rand(5).reshape(2, 2)

    with pytest.raises(RuntimeError, match="shape"), own_randomness(3):
        fail()
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.backends.cudnn.benchmark
    assert not torch.backends.cudnn.deterministic


# --- nets by name


@pytest.mark.parametrize(
    ("name", "kind", "layers", "norms"),
    [
        ("lenet", "LeNet", 4, 0),
        ("zenke", "ZenkeNet", 6, 0),
        ("vgg16", "VGG", 14, 0),
        ("vgg16-bn", "VGG", 14, 13),
        ("vgg11", "VGG", 9, 0),
        ("vgg11-bn", "VGG", 9, 8),
    ],
)
def test_nets_by_name(name, kind, layers, norms):
    net = build_net(NetConfig(name=name, init="he"), (3, 32, 32), 10, seed=3)
    assert type(net).__name__ == kind
    assert sum(isinstance(m, nn.Conv2d | nn.Linear) for m in net.modules()) == layers
    assert sum(isinstance(m, nn.BatchNorm2d) for m in net.modules()) == norms
    assert not net.head.bias.any()
    again = build_net(NetConfig(name=name, init="he"), (3, 32, 32), 10, seed=3)
    assert torch.equal(net.head.weight, again.head.weight)


def test_an_unknown_net_lists_the_known_ones():
    with pytest.raises(ValidationError, match=r"'mlp', 'lenet', 'zenke', 'vgg16', 'vgg16-bn', 'vgg11' or 'vgg11-bn'"):
        NetConfig(name="vgg-16")


def test_images_that_do_not_fit_are_said_before_training(tmp_path):
    config = conv_run("sgd", "vgg16")
    with pytest.raises(RunError, match=r"net 'vgg16': images of shape \(3, 16, 16\) are too small for a VGG: pad"):
        run(config, tmp_path)


def test_a_batch_of_one_image_is_refused_for_batch_norm_only():
    leaves_one = {"data": RGB32 | {"train": 33}, "tasks": {"cut": "whole"}, "stream": {"batch_size": 8}}
    config = conv_run("sgd", "vgg16-bn", **leaves_one)
    with pytest.raises(RunError, match=r"33 images in batches of 8 leave one: choose another stream.batch_size"):
        build_learner(config, build_stream(config))
    for fine in (
        conv_run("sgd", "vgg16", **leaves_one),
        conv_run("sgd", "vgg16-bn", **leaves_one | {"data": RGB32 | {"train": 34}}),
    ):
        build_learner(fine, build_stream(fine))


# --- mixes


@pytest.fixture
def sets(tmp_path, monkeypatch):
    """Two small data sets of the user's own: grey 28 x 28 and RGB 32 x 32."""
    generator = np.random.default_rng(0)
    for name, shape, classes in (("grey", (28, 28), 4), ("colour", (32, 32, 3), 6)):
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        for part, count in (("train", 60), ("test", 24)):
            images = generator.integers(1, 256, (count, *shape), dtype=np.uint8)
            np.savez(folder / f"{part}.npz", images=images, labels=np.arange(count) % classes)
    monkeypatch.setenv("BGD_DATA", str(tmp_path / "data"))


def test_a_mix_of_grey_and_colour(sets):
    setup = Setup(
        data={"mix": [{"name": "grey"}, {"name": "colour", "train": 30, "test": 12}], "normalise": "own"},
        tasks={"cut": "mix"},
        scenario="task",
    )
    tasks = build_tasks(setup, seed=0)
    assert tasks.names == ("grey", "colour")
    assert tasks.shape == (3, 32, 32)
    assert [(len(t.train), len(t.test)) for t in tasks] == [(60, 24), (30, 12)]
    assert tasks.heads.tasks == ((0, 1, 2, 3), (4, 5, 6, 7, 8, 9))
    for task in tasks:
        x = task.train.x(task.train.pixels(np.arange(len(task.train))))
        torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(3), atol=1e-4, rtol=0)
        torch.testing.assert_close(x.var((0, 2, 3), correction=0), torch.ones(3), atol=1e-3, rtol=0)
    grey = tasks[0].train.images
    assert torch.equal(grey[:, 0], grey[:, 1])
    assert torch.equal(grey[:, 0], grey[:, 2])
    assert not grey[:, :, :2].any()
    assert not grey[:, :, :, 30:].any()


def test_subsets_of_classes_are_tasks_of_their_own(sets):
    """As CIFAR10, then five times ten classes of CIFAR100."""
    parts = [{"name": "colour", "classes": range(2 * k, 2 * k + 2)} for k in range(3)]
    data = DataConfig(mix=[{"name": "grey"}, *parts, {"name": "grey", "classes": [3, 1]}], train=5, test=4)
    got = build_mix(data)
    assert [d.name for d in got] == ["grey", "colour 0-1", "colour 2-3", "colour 4-5", "grey 3, 1"]
    assert [d.classes for d in got[1:]] == [("0", "1"), ("2", "3"), ("4", "5"), ("3", "1")]
    assert {len(d.train) for d in got} == {5}
    assert got[4].train.labels.tolist() == [1, 0, 1, 0, 1]


def test_a_mix_runs_from_end_to_end(sets, tmp_path):
    config = RunConfig(
        method="sgd",
        setup={
            "data": {"mix": [{"name": "grey"}, {"name": "colour"}], "normalise": "own"},
            "tasks": {"cut": "mix"},
            "scenario": "task",
            "net": {"name": "lenet"},
            "stream": {"batch_size": 32},
        },
    )
    result = run(config, tmp_path / "run")
    assert result.task_names == ["grey", "colour"]
    assert len(result.R) == 2
    assert RunConfig.model_validate(json.loads((tmp_path / "run" / "config.json").read_text())) == config


def test_the_notes_of_all_sets_of_a_mix(monkeypatch):
    from dataclasses import replace

    from bgd.data import load
    from bgd.runs import build

    notes = {"a": "", "b": "half of it", "c": "drawn by hand"}
    monkeypatch.setattr(build, "load", lambda name: replace(load("digits"), name=name, note=notes[name]))
    assert note_on(DataConfig(mix=[{"name": n} for n in "abcb"])) == "b: half of it; c: drawn by hand"
    assert note_on(DataConfig(name="b")) == "half of it"
    assert note_on(DataConfig(name="a")) == ""


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ({"tasks": {"cut": "mix"}}, "tasks.cut is 'mix', but data.mix is empty"),
        ({"data": {"mix": [{"name": "digits"}]}}, "data.mix lists 1 data sets, but tasks.cut is 'permute'"),
        (
            {
                "data": {"mix": [{"name": "digits"}]},
                "tasks": {"cut": "mix"},
                "scenario": "continuous task-agnostic",
                "stream": {"kind": "drifting"},
            },
            "a drifting stream takes one data set",
        ),
        ({"stream": {"augment": {"crop": 4}}}, "permuted pixels have no neighbours"),
    ],
)
def test_what_does_not_go_together_is_said_before_anything_starts(setup, said):
    with pytest.raises(RunError, match=said):
        check(RunConfig(method="sgd", setup=setup))


def test_wrong_classes_and_shapes_name_the_way_out():
    with pytest.raises(ValueError, match=r"classes \(0, 10\) of digits: list at least one, each once, from 0 to 9"):
        build_mix(DataConfig(mix=[{"name": "digits", "classes": [0, 10]}]))
    with pytest.raises(ValueError, match=r"do not fit into \(1, 4, 4\)"):
        build_tasks(Setup(data={"shape": [1, 4, 4]}), seed=0)


# --- augmentation, and names of runs


def test_augmentation_reaches_every_kind_of_stream():
    crop_flip = {"batch_size": 8, "augment": {"crop": 4, "flip": True}}
    for method, scenario, stream in (
        ("sgd", "task", {}),
        ("offline", "task", {}),
        ("sgd", "continuous task-agnostic", {"kind": "continuous", "iterations": 10}),
        ("sgd", "continuous task-agnostic", {"kind": "drifting", "iterations": 10}),
    ):
        config = conv_run(method, "zenke", scenario=scenario, stream=crop_flip | stream)
        assert (build_stream(config).augment.crop, build_stream(config).augment.flip) == (4, True)
    assert build_stream(conv_run("sgd", "zenke", stream={})).augment is None


def test_runs_made_before_keep_their_names():
    """Folders of runs hold the digest: settings that came later must not change it while they are not used."""
    assert RunConfig(method="sgd").digest == "63134c1566"
    older = {"data": {"name": "mnist", "pad": 2}, "stream": {"kind": "continuous"}}
    config = RunConfig(method="bgd", seed=2019, settings={"std_init": 1e-5}, setup=older)
    assert config.digest == "42b91b0479"
    changes = ({"data": {"shape": [1, 32, 32]}}, {"stream": {"augment": {"flip": True}}}, {"net": {"name": "lenet"}})
    digests = {RunConfig(method="sgd", setup=setup).digest for setup in changes}
    assert len(digests | {RunConfig(method="sgd").digest}) == 4
