"""Users' own experiments: TOML with the same fields; a wrong key or value is named, with the fix."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bgd.data
from bgd.cli import main
from bgd.experiments import ExperimentError, find, load, make_plan
from bgd.experiments.storage import Declaration, declare, read_comparison, read_declaration
from bgd.report.load import compare_stored
from bgd.report.notes import collect_notes
from bgd.runs import RunError, run
from bgd.runs import data as run_data
from bgd.runs.config import DataConfig

GOOD = """
title = "My drifting digits"
seeds = [1, 2]

[setup]
scenario = "continuous task-agnostic"
data = { name = "digits", train = 200, test = 50 }
net = { widths = [16] }

[columns.turning.stream]
kind = "drifting"
iterations = 30

[columns.fading]
stream = { kind = "continuous", iterations = 20 }
tasks = { count = 2 }

[rows.BGD]
method = "bgd"
settings = { std_init = 0.05, mc_samples = 2 }

[rows.Plain]
method = "sgd"
only = ["turning"]
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="mine.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_valid_experiment_runs(write, tmp_path):
    mine = load(write(GOOD))
    assert mine.name == "mine"
    configs = make_plan(mine).configs
    assert [(c.row, c.column, c.seed) for c in configs] == [
        (row, column, seed)
        for seed in (1, 2)
        for column, row in (("turning", "BGD"), ("turning", "Plain"), ("fading", "BGD"))
    ]
    fading = configs[2]
    assert fading.setup.stream.iterations == 20
    assert fading.setup.net.widths == (16,)
    assert fading.preset == "full"
    assert run(fading, tmp_path / "run").iterations == 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("iterations = 30", "iteration = 30"),
            "columns.turning.stream.iteration: no such key: did you mean 'iterations'?",
        ),
        (
            ("iterations = 30", 'iterations = "many"'),
            "columns.turning.stream.iterations: 'many': input should be a valid",
        ),
        (("iterations = 30", "iterations = -1"), "columns.turning.stream.iterations: -1: input should be greater"),
        (('kind = "drifting"', 'kind = "drfting"'), "columns.turning.stream.kind: 'drfting': did you mean 'drifting'?"),
        (("[setup]", "[setpu]"), "setpu: no such key: did you mean 'setup'?"),
        (
            ('only = ["turning"]', 'only = ["turnng"]'),
            "rows.Plain.only: no column 'turnng': did you mean 'turning'?",
        ),
        (
            ('only = ["turning"]', 'only = ["turning"]\n[rows.Plain.columns.fading]\nsettings = { lr = 9.0 }'),
            "rows.Plain.columns: no column 'fading': choose one of turning",
        ),
        (("seeds = [1, 2]", 'name = "digits"'), "'digits' is the name of a built-in experiment"),
        (("settings = {", "setings = {"), "rows.BGD.setings: no such key: did you mean 'settings'?"),
        (('title = "My drifting digits"', ""), "title: missing"),
        (("seeds = [1, 2]", "seeds = [1, 1]"), "seeds: [1, 1]: value error, seeds=[1, 1]: give different"),
        (("seeds = [1, 2]", "seeds = [1, 2"), "not TOML"),
        (
            ("iterations = 30", "epochs = 3"),
            "columns.turning.stream.epochs: has no effect: the stream is drifting",
        ),
        (
            ("iterations = 30", "beta = 2.0"),  # in the other column it would
            "columns.turning.stream.beta: has no effect: the stream is drifting",
        ),
        (("[setup]", "[setup]\nstream.epochs = 3"), "setup.stream.epochs: has no effect"),
        (
            ("seeds = [1, 2]", "presets.a.seeds = [-2]"),
            "presets.a.seeds: [-2]: value error, seeds=[-2]: give different",
        ),
    ],
)
def test_invalid_experiments_are_rejected(write, change, message):
    path = write(GOOD.replace(*change))
    with pytest.raises(ExperimentError) as caught:
        make_plan(load(path))
    assert str(caught.value).startswith(f"{path}: ") or "has no effect" in message
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("std_init = 0.05", "std_int = 0.05"), "BGD, turning, seed 1: 'bgd' has no setting 'std_int': did you mean"),
        (('method = "sgd"', 'method = "sdg"'), "Plain, turning, seed 1: no method 'sdg': did you mean 'sgd'?"),
        (('"continuous task-agnostic"', '"domain"'), "scenario 'domain' needs a stream of kind discrete"),
        (('"continuous task-agnostic"', '"continuos"'), "no scenario 'continuos'"),
    ],
)
def test_impossible_runs_are_rejected_when_planned(write, change, message):
    with pytest.raises(RunError, match=re.escape(message)):
        make_plan(load(write(GOOD.replace(*change))))


def test_none_can_be_given(write):
    mine = load(write(GOOD.replace("mc_samples = 2", 'std_max = "none"').replace("My drifting digits", "none")))
    assert make_plan(mine).configs[0].settings == {"std_init": 0.05, "std_max": None}
    assert mine.title == "none"


def test_the_name_follows_from_the_file(tmp_path):
    (tmp_path / "My_drift 2.toml").write_text(GOOD)
    assert load(tmp_path / "My_drift 2.toml").name == "my-drift-2"


def test_a_missing_file():
    with pytest.raises(ExperimentError, match=r"no\.toml: cannot be read \(No such file"):
        load("no.toml")


def test_overrides_come_last():
    """Over the preset, also where that has a value for one column."""
    texts = ["stream.epochs=2", "SGD.lr=0.5", "bgd.std_max=init", "loss_over=all"]
    configs = {(c.row, c.column): c for c in make_plan(find("split-mnist"), "smoke", overrides=texts).configs}
    assert {c.setup.stream.epochs for c in configs.values()} == {2}
    assert {c.setup.loss_over for c in configs.values()} == {"all"}
    assert configs["SGD", "task"].settings["lr"] == 0.5
    assert configs["BGD", "class"].settings["std_max"] == "init"
    assert configs["BGD", "class"].settings["std_init"] == 0.017  # as declared
    continuous = make_plan(find("continuous-permuted-mnist"), "smoke", overrides={"stream.iterations": 77})
    assert {c.setup.stream.iterations for c in continuous.configs} == {77}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("stream.epoch=2", "stream.epoch: no such key: did you mean 'epochs'?"),
        ("stream.epochs", "write it as key=value"),
        ("epochs=2", "no such key"),
        ("bdg.lr=2", "no row 'bdg': did you mean 'bgd'?"),
        ("stream.epochs=none", "stream.epochs: 'none': input should be a valid integer"),
    ],
)
def test_invalid_overrides_are_rejected(override, message):
    with pytest.raises(ExperimentError) as caught:
        make_plan(find("digits"), "smoke", overrides=[override])
    assert message in str(caught.value)


def test_a_declaration_survives_its_file(write, tmp_path):
    """Keys that are not given stay so: a preset must still override a column after reading it back."""
    for experiment in (load(write(GOOD)), find("mc-samples")):
        preset = "smoke" if "smoke" in experiment.presets else "full"
        configs = make_plan(experiment, preset, seeds=[3]).configs
        declare(tmp_path / experiment.name, Declaration(experiment=experiment, preset=preset), configs)
        read = read_declaration(tmp_path / experiment.name)
        assert [c.digest for c in make_plan(read.experiment, preset, seeds=[3]).configs] == [c.digest for c in configs]


def test_runs_of_an_older_declaration_are_left_out(write, tmp_path):
    folder = tmp_path / "comparison"
    old = load(write(GOOD))
    configs = make_plan(old, columns=["fading"], seeds=[1]).configs
    (path,) = declare(folder, Declaration(experiment=old, preset="full"), configs)
    run(configs[0], path)
    assert len(read_comparison(folder).results) == 1
    new = load(write(GOOD.replace("std_init = 0.05", "std_init = 0.04")))
    declare(folder, Declaration(experiment=new, preset="full"), make_plan(new, columns=["fading"], seeds=[1]).configs)
    stored = read_comparison(folder)
    assert not stored.results
    assert stored.outdated == [path]
    assert collect_notes(compare_stored(stored)) == [
        "1 run excluded: made from another declaration, or run again since",
        "Declared and not run: BGD (turning); Plain",
    ]
    assert len(stored.unfinished) == 1


@pytest.fixture
def own(tmp_path, monkeypatch):
    """An experiment on own arrays, in a project's folder: returns a function to write them, and one to run it."""
    monkeypatch.chdir(tmp_path)

    def put(value: int, folder: str = "arrays") -> None:
        Path(folder).mkdir(exist_ok=True)
        for part in ("train", "test"):
            images = np.random.default_rng(value).integers(0, 256, (40, 4, 4), dtype=np.uint8)
            np.savez(f"{folder}/{part}.npz", images=images, labels=np.arange(40) % 2)
        run_data._load.cache_clear()  # a new command is a new process
        run_data._digest.cache_clear()

    def go(name: str = "mine") -> int:
        Path(f"{name}.toml").write_text(
            'title = "Mine"\n[setup]\ndata = { name = "./arrays" }\ntasks = { count = 2 }\nnet = { widths = [4] }\n'
            '[rows.SGD]\nmethod = "sgd"\n'
        )
        with pytest.raises(SystemExit) as ended:
            main(["run", f"{name}.toml", "--out", "out", "--quiet", "--jobs", "1"])
        return ended.value.code or 0

    return put, go


def test_changes_to_own_arrays_are_noticed(own, capsys):
    put, go = own
    put(1)
    assert go() == 0
    assert go() == 0  # nothing to do
    put(2)
    assert go() == 2
    assert "/arrays has changed since" in capsys.readouterr().err
    put(1)  # as before
    (result,) = Path("out").rglob("result.json")
    result.unlink()
    assert go() == 0
    result.unlink()
    put(2)
    assert go() == 2  # nor is a run continued


def test_a_run_on_other_arrays_of_the_same_name_is_not_reused(own):
    put, go = own
    put(1)
    assert go("mine") == 0
    put(2)
    assert go("other") == 0
    assert len({path.read_text().partition('"R"')[2] for path in Path("out").rglob("result.json")}) == 2


def test_other_bytes_under_a_published_name_are_distinguished(monkeypatch):
    digits = bgd.data.load("digits")
    noise = replace(digits.train, images=digits.train.images.flip(0))
    seen = []
    for data in (digits, replace(digits, note="not the published files"), replace(digits, train=noise, note="others")):
        monkeypatch.setattr(run_data, "load_data", lambda _name, data=data: data)
        run_data._load.cache_clear()
        run_data._digest.cache_clear()
        seen.append(run_data.data_digest(DataConfig(name="digits")))
    monkeypatch.undo()
    run_data._load.cache_clear()
    run_data._digest.cache_clear()
    assert seen[0] == ""
    assert len(set(seen)) == 3


def test_a_part_of_the_setup_at_the_top_level_is_rejected(write):
    with pytest.raises(ExperimentError, match="test: no such key at the top level: it belongs in setup"):
        load(write(GOOD + "\n[test]\nsamples = 3\n"))


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path)
    text = (
        GOOD.replace('name = "digits"', 'name = "./arrays"') + '\n[presets.own.setup.data]\nname = "../other/arrays"\n'
    )
    Path("project/mine.toml").write_text(text)
    mine = load("project/mine.toml")
    assert mine.setup.data.name == str(tmp_path / "project" / "arrays")
    assert mine.presets["own"].setup.data.name == str(tmp_path / "other" / "arrays")
    assert mine.import_paths == (str(tmp_path / "project"),)
    Path("project/mine.toml").write_text('import_paths = ["lib", "/opt/lib"]\n' + GOOD)
    assert load("project/mine.toml").import_paths == (
        str(tmp_path / "project" / "lib"),
        "/opt/lib",
        str(tmp_path / "project"),
    )
    assert load("project/mine.toml").setup.data.name == "digits"
