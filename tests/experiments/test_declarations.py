"""The built-in experiments: complete, with the paper's values, and runnable without files or network."""

import pytest

from bgd.data.tables import NAMED_TABLES
from bgd.experiments import EXPERIMENTS, find, make_plan
from bgd.experiments.layers import resolve
from bgd.experiments.storage import Declaration, declare, read_comparison
from bgd.runs.data import data_names
from bgd.runs.executors import Job, in_this_process
from bgd.runs.options import Options

NAMES = (
    "labels-trick",
    "split-mnist",
    "permuted-mnist",
    "continuous-permuted-mnist",
    "discrete-permuted-mnist",
    "mnist-classification",
    "mc-samples",
    "split-mnist-initialisation",
    "collapse",
    "digits",
    "vision-mix",
    "cifar-10-100",
    "cifar10-vgg",
    "cifar10-timing",
    "long-training",
    "exact-head",
    "exact-head-permuted",
    "tabular-streams",
)


def test_all_experiments_exist():
    assert set(NAMES) <= set(EXPERIMENTS)
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_preset_can_run(name):
    experiment = EXPERIMENTS[name]
    assert [name for name in experiment.presets if name != "short"] == ["smoke", "quick", "paper"]
    assert all(preset.expected_time for preset in experiment.presets.values())
    for preset in experiment.presets:
        configs = make_plan(experiment, preset).configs  # validates every run's settings and scenario
        assert len({config.digest for config in configs}) == len(configs)
    used = {name for config in make_plan(experiment, "smoke").configs for name in data_names(config.setup.data)}
    assert used <= {"digits", *NAMED_TABLES}, "neither files nor network"


# two methods of each are enough: every method has its own tests, and the demo runs as a whole elsewhere
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("labels-trick", ["bgd", "offline"]),
        ("labels-trick-coefficients", ["ewc", "mas"]),
        ("split-mnist", ["bgd", "mas"]),
        ("permuted-mnist", ["bgd", "ewc"]),
        ("continuous-permuted-mnist", ["BGD, std capped", "online-ewc"]),
        ("continuous-search", ["MAS, SGD, lr 0.01"]),
        ("discrete-permuted-mnist", ["bgd", "vcl"]),
        ("mnist-classification", ["bgd", "bbb"]),
        ("mc-samples", ["K = 10", "K = 2, antithetic, capped"]),
        ("split-mnist-initialisation", ["Xavier, zero biases", "Xavier, biases of the script, joined heads"]),
        ("collapse", ["two networks", "one pass, torch's noise"]),
        ("vision-mix", ["bgd", "OL, Kronecker", "AL, diagonal"]),
        ("cifar-10-100", ["bgd", "si"]),
        ("cifar10-vgg", ["bgd", "noisy-kfac"]),
        ("cifar10-timing", ["sgd", "K = 2"]),
        ("long-training", ["BGD"]),
        ("exact-head", ["exact-head"]),
        ("exact-head-permuted", ["exact-head", "bgd"]),
        ("tabular-streams", ["StreamClassifier", "Adam", "river: logistic regression"]),
    ],
)
def test_smoke(name, rows, tmp_path, monkeypatch):
    monkeypatch.setenv("BGD_OFFLINE", "1")
    monkeypatch.delenv("BGD_DATA", raising=False)
    experiment = find(name)
    configs = make_plan(experiment, "smoke", rows=rows).configs
    folders = declare(tmp_path, Declaration(experiment=experiment, preset="smoke"), configs)
    jobs = [Job(c, f, Options()) for c, f in zip(configs, folders, strict=True)]
    errors = [outcome.error for outcome in in_this_process(jobs, lambda *_: None) if outcome.error]
    assert not errors
    stored = read_comparison(tmp_path)
    assert len(stored.results) == len(configs)
    assert not stored.unfinished
    assert not stored.outdated


@pytest.mark.parametrize(
    ("name", "row", "column", "mean", "spread"),
    [
        ("labels-trick", "MAS", "+ labels trick", 60.43, 3.29),
        ("labels-trick", "Adam", "class learning", 19.71, 0.08),
        ("split-mnist", "LwF", "domain", 71.02, 1.26),
        ("split-mnist", "Offline", "class", 97.53, 0.30),
        ("split-mnist", "Online EWC", "task", 98.04, 1.10),
        ("permuted-mnist", "BGD", "class", 84.78, 1.3),
        ("permuted-mnist", "Offline", "task", 98.01, 0.04),
        ("mnist-classification", "BBB", "width 1200", 97.96, None),
        ("vision-mix", "OL, Kronecker", "accuracy", 85.40, None),
        ("cifar10-vgg", "BGD", "with BN", 91.07, None),
        ("cifar10-vgg", "Noisy K-FAC", "without BN", 89.35, None),
        ("cifar10-timing", "K = 4", "accuracy", 89.32, None),
    ],
)
def test_values_of_the_paper(name, row, column, mean, spread):
    reported = find(name).paper[row][column]
    assert (reported.mean, reported.spread) == (mean, spread)


def test_every_cell_of_the_papers_tables_is_declared():
    for name, count in (
        ("labels-trick", 19),
        ("split-mnist", 33),
        ("permuted-mnist", 33),
        ("mnist-classification", 9),
        ("vision-mix", 10),
        ("cifar10-vgg", 12),
        ("cifar10-timing", 4),
    ):
        assert sum(len(cells) for cells in find(name).paper.values()) == count


def test_values_of_the_paper_for_each_task():
    experiment = find("vision-mix")
    for cells in experiment.paper.values():
        reported = cells["accuracy"]
        assert len(reported.tasks) == len(experiment.setup.data.mix) == 5
        assert sum(reported.tasks) / 5 == pytest.approx(
            reported.mean, abs=0.011
        )  # the table's own average, to its digits
    assert experiment.paper["BGD"]["accuracy"].tasks[-1] == 65.96


def test_times_of_the_paper():
    times = {row: cells["accuracy"].seconds for row, cells in find("cifar10-timing").paper.items()}
    ratios = {row: round(seconds / times["SGD"], 1) for row, seconds in times.items()}
    assert ratios == {"SGD": 1.0, "K = 2": 2.4, "K = 4": 4.5, "K = 10": 10.7}


@pytest.mark.parametrize(
    ("name", "row", "column", "settings", "setup"),
    [
        (
            "vision-mix",
            "BGD",
            "accuracy",
            {"mc_samples": 10, "lr": 1.0, "std_init": 0.02},
            {
                "stream.epochs": 20,
                "stream.batch_size": 64,
                "stream.augment.crop": 0,
                "net.name": "lenet",
                "net.heads": "own",
                "data.normalise": "own",
            },
        ),
        (
            "cifar-10-100",
            "BGD",
            "accuracy",
            {"mc_samples": 10, "lr": 2.0, "std_init": 0.019},
            {"stream.epochs": 150, "stream.augment.crop": 4, "net.name": "zenke", "test.inference": "map"},
        ),
        ("cifar-10-100", "SI", "accuracy", {"lr": 0.001, "coefficient": 0.01, "damping": 0.001}, {"scenario": "task"}),
        (
            "cifar10-vgg",
            "BGD",
            "with BN",
            {"mc_samples": 10, "lr": 8.0, "std_init": 0.011},
            {"net.name": "vgg16-bn", "net.init": "torch-zero-bias", "stream.augment.flip": True},
        ),
        (
            "cifar10-vgg",
            "BGD",
            "without BN",
            {"mc_samples": 10, "lr": 10.0, "std_init": 0.015},
            {"net.name": "vgg16", "net.init": "he-out", "stream.epochs": 400, "stream.augment.crop": 4},
        ),
        (
            "cifar10-vgg",
            "SGD",
            "with BN",
            {"lr": 0.01, "momentum": 0.9, "decay_every": 39_100, "decay_by": 10},
            {"stream.batch_size": 128},
        ),
        (
            "long-training",
            "BGD",
            "MNIST, MLP",
            {"mc_samples": 10, "lr": 1.0, "std_init": 0.05},
            {"stream.epochs": 5000, "net.widths": (400, 400), "data.train": 50_000},
        ),
        (
            "split-mnist",
            "BGD",
            "class",
            {"mc_samples": 10, "lr": 1.0, "std_init": 0.017},
            {"loss_over": "all", "scenario": "class", "net.widths": (400, 400), "net.init": "xavier"},
        ),
        (
            "split-mnist",
            "SI",
            "domain",
            {"lr": 0.001, "coefficient": 3000},
            {"stream.epochs": 4, "data.pad": 2, "data.normalise": "padded-mnist", "net.init": "torch"},
        ),
        (
            "permuted-mnist",
            "Online EWC",
            "domain",
            {"lr": 0.0001, "coefficient": 250, "fisher_over": "batch"},
            {"tasks.count": 10, "stream.epochs": 10, "net.widths": (1000, 1000)},
        ),
        ("permuted-mnist", "SGD", "class", {"lr": 0.001}, {"loss_over": "seen"}),
        ("permuted-mnist", "BGD", "task", {"mc_samples": 10, "lr": 1.0, "std_init": 0.02}, {"test.inference": "map"}),
        (
            "continuous-permuted-mnist",
            "MAS",
            "10 tasks",
            {"consolidate_every": 1, "optimizer": "sgd", "lr": 0.01, "coefficient": 0.001},
            {"stream.iterations": 93_800, "stream.beta": 4.0, "tasks.count": 10, "net.widths": (200, 200)},
        ),
        (
            "discrete-permuted-mnist",
            "BGD",
            "figure of 20 epochs",
            {"std_init": 0.06, "mc_samples": 10, "lr": 1.0},
            {"scenario": "discrete task-agnostic", "stream.batch_size": 256, "data.pad": 0, "test.inference": "mc"},
        ),
        (
            "discrete-permuted-mnist",
            "BGD",
            "20 epochs, width 2000",
            {"std_init": 0.015, "mc_samples": 10, "lr": 1.0},
            {"stream.batch_size": 256, "stream.epochs": 20, "net.widths": (2000, 2000), "data.pad": 0},
        ),
        (
            "discrete-permuted-mnist",
            "VCL",
            "figure of 300 epochs",
            {"lr": 0.001},
            {"scenario": "domain", "stream.epochs": 300},
        ),
        (
            "mnist-classification",
            "BGD",
            "width 1200",
            {"mc_samples": 10, "lr": 1.0, "std_init": 0.04},
            {"data.train": 50_000, "stream.epochs": 600, "net.widths": (1200, 1200)},
        ),
        ("labels-trick", "EWC", "+ labels trick", {"lr": 0.001, "coefficient": 600}, {"loss_over": "batch"}),
    ],
)
def test_the_papers_settings(name, row, column, settings, setup):
    config = resolve(find(name), "paper", row, column, 2019)
    if config.method == "bgd":  # uncapped; the rest is not the paper's
        paper = {"estimator": "shared", "std_max": None, "max_move": None, "boost": None, "nonfinite": "skip"}
        settings = settings | paper | {"noise": "hash", "compile": None}
    assert config.settings == settings
    for path, expected in setup.items():
        value = config.setup
        for part in path.split("."):
            value = getattr(value, part)
        assert value == expected, path


def test_the_papers_seeds():
    for name in ("labels-trick", "split-mnist", "permuted-mnist"):
        assert find(name).seeds == tuple(range(2019, 2029))
    assert find("continuous-permuted-mnist").seeds == (2019, 2020, 2021)


def test_only_cifar10_is_augmented_in_the_vision_mix():
    members = resolve(find("vision-mix"), "paper", "BGD", "accuracy", 2019).setup.data.mix
    assert [bool(one.augment) for one in members] == [one.name == "cifar10" for one in members]


def test_one_row_of_the_factorial_is_one_setting_for_all_cells():
    """Weights x biases, and nothing else: no cell has a setting of its own but the std_init that names it."""
    experiment = find("split-mnist-initialisation")
    configs = make_plan(experiment, "paper").configs
    assert len(configs) == 10 * (6 * 7 + 1)
    for column in experiment.columns:
        cells = [c for c in configs if (c.column, c.seed) == (column, 2019) and c.setup.net.heads == "own"]
        assert len({c.setup.net.init for c in cells}) == len(cells) == 6
        assert len({str((c.settings, c.setup.model_copy(update={"net": None}))) for c in cells}) == 1
    assert {c.settings["mc_samples"] for c in configs} == {10}
    assert {c.settings["std_max"] for c in configs} == {None}


def test_collapses_are_counted_over_the_papers_first_task():
    configs = make_plan(find("collapse"), "paper").configs
    assert len(configs) == 15 * 3 * 50
    lengths = {c.column: c.setup.stream.iterations for c in configs if c.setup.stream.kind == "continuous"}
    assert lengths == {"permuted, 0.06": 250}
    by_hand = {c.settings["std_init"] for c in configs if c.row != "the library's default"}
    assert by_hand == {0.06, 0.05, 0.02}
