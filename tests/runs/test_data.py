"""Data sets and mixes of them, as a configuration declares them."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from bgd.runs import RunConfig, run
from bgd.runs import data as run_data
from bgd.runs.build import build_tasks
from bgd.runs.config import DataConfig, Setup
from bgd.runs.data import build_mix, data_note


@pytest.fixture
def data_sets(tmp_path, monkeypatch):
    """Two small data sets of the user's own: grey 28 x 28 and RGB 32 x 32."""
    generator = np.random.default_rng(0)
    for name, shape, classes in (("grey", (28, 28), 4), ("colour", (32, 32, 3), 6)):
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        for part, count in (("train", 60), ("test", 24)):
            images = generator.integers(1, 256, (count, *shape), dtype=np.uint8)
            np.savez(folder / f"{part}.npz", images=images, labels=np.arange(count) % classes)
    monkeypatch.setenv("BGD_DATA", str(tmp_path / "data"))


def test_a_mix_of_grey_and_colour(data_sets):
    setup = Setup(
        data={"mix": [{"name": "grey"}, {"name": "colour", "train": 30, "test": 12}], "normalise": "own"},
        tasks={"kind": "mix"},
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


def test_subsets_of_classes_are_tasks_of_their_own(data_sets):
    """As CIFAR10, then five times ten classes of CIFAR100."""
    parts = [{"name": "colour", "classes": range(2 * k, 2 * k + 2)} for k in range(3)]
    data = DataConfig(mix=[{"name": "grey"}, *parts, {"name": "grey", "classes": [3, 1]}], train=5, test=4)
    mixed = build_mix(data)
    assert [d.name for d in mixed] == ["grey", "colour 0-1", "colour 2-3", "colour 4-5", "grey 3, 1"]
    assert [d.classes for d in mixed[1:]] == [("0", "1"), ("2", "3"), ("4", "5"), ("3", "1")]
    assert {len(d.train) for d in mixed} == {5}
    assert mixed[4].train.labels.tolist() == [1, 0, 1, 0, 1]


def test_a_mix_runs_from_end_to_end(data_sets, tmp_path):
    config = RunConfig(
        method="sgd",
        setup={
            "data": {"mix": [{"name": "grey"}, {"name": "colour"}], "normalise": "own"},
            "tasks": {"kind": "mix"},
            "scenario": "task",
            "net": {"name": "lenet"},
            "stream": {"batch_size": 32},
        },
    )
    result = run(config, tmp_path / "run")
    assert result.task_names == ["grey", "colour"]
    assert len(result.R) == 2
    assert RunConfig.model_validate(json.loads((tmp_path / "run" / "config.json").read_text())) == config


def test_notes_of_all_data_sets_of_a_mix(monkeypatch):
    load = run_data.load
    notes = {"a": "", "b": "half of it", "c": "made by hand"}
    monkeypatch.setattr(run_data, "load", lambda name: replace(load("digits"), name=name, note=notes[name]))
    assert data_note(DataConfig(mix=[{"name": n} for n in "abcb"])) == "b: half of it; c: made by hand"
    assert data_note(DataConfig(name="b")) == "half of it"
    assert data_note(DataConfig(name="a")) == ""


def test_wrong_classes_and_shapes_are_rejected():
    with pytest.raises(ValueError, match=r"classes \(0, 10\) of digits: list at least one, each once, from 0 to 9"):
        build_mix(DataConfig(mix=[{"name": "digits", "classes": [0, 10]}]))
    with pytest.raises(ValueError, match=r"do not fit into \(1, 4, 4\)"):
        build_tasks(Setup(data={"shape": [1, 4, 4]}), seed=0)
