"""What BGD does by default, setting by setting, beside baselines at every step size of a grid."""

from __future__ import annotations

from typing import Any

from bgd.experiments.builtin import continuous_permuted_mnist, split_mnist
from bgd.experiments.builtin.presets import PAPER_SETTINGS, STAND_IN, TINY_IMAGES, smoke
from bgd.experiments.declaration import Experiment, Preset, Row, RowInColumn
from bgd.experiments.layers import merge_setups
from bgd.runs.config import DataConfig, NetConfig, Setup, StreamConfig, TasksConfig, TestConfig

FADING, SPLIT, CIFAR = "fading permuted MNIST", "split class + trick", "CIFAR10, LeNet"
BY_HAND = {FADING: 0.06, SPLIT: 0.017, CIFAR: 0.02}
"""The std_init that the paper or its authors' code sets by hand."""
ITERATIONS = 1_000
TESTED_BY = TestConfig(inference="map", stds=1)
CIFAR_SETUP = Setup(
    data=DataConfig(name="cifar10", normalise="own", test=2_000),
    scenario="discrete task-agnostic",
    tasks=TasksConfig(kind="whole", count=1),
    stream=StreamConfig(kind="discrete", epochs=1, batch_size=64),
    net=NetConfig(name="lenet", init="xavier"),
    test=TESTED_BY,
)
GRID = {"sgd": (0.003, 0.01, 0.03, 0.1), "adam": (1e-4, 3e-4, 1e-3, 3e-3), "adagrad": (1e-3, 3e-3, 1e-2, 3e-2)}
NAMES = {"sgd": "SGD", "adam": "Adam", "adagrad": "Adagrad"}


def _bgd(**settings: Any) -> Row:
    return Row(method="bgd", settings=settings)


def _by_hand(settings: dict[str, Any]) -> Row:
    columns = {column: RowInColumn(settings={"std_init": std}) for column, std in BY_HAND.items()}
    return Row(method="bgd", settings=settings, columns=columns)


EXPERIMENT = Experiment(
    name="defaults",
    title="BGD without a setting",
    shows="The default of BGD, the default with one of its parts taken away, and the std that the paper sets by hand; "
    "the baselines at four step sizes each, of which none was chosen by these seeds.",
    source="No table of the paper, which sets std_init for each experiment",
    columns={
        FADING: merge_setups(
            continuous_permuted_mnist.SETUP,
            continuous_permuted_mnist.tasks(5, ITERATIONS),
            Setup(data=DataConfig(test=2_000), test=TESTED_BY),
        ),
        SPLIT: merge_setups(
            split_mnist.SETUP,
            Setup(scenario="class", loss_over="batch", net=NetConfig(init="xavier"), test=TESTED_BY),
        ),
        CIFAR: CIFAR_SETUP,
    },
    rows={
        "BGD": _bgd(),
        "BGD, no cap": _bgd(std_max=None),
        "BGD, no limit to a move": _bgd(max_move=None),
        "BGD, no boost": _bgd(boost=None),
        "BGD, two passes": _bgd(mc_samples=2),
        "BGD, std by hand": _by_hand({"boost": None}),
        "BGD, two networks": _by_hand(PAPER_SETTINGS | {"mc_samples": 2, "std_max": "init", "noise": "hash"}),
        **{
            f"{NAMES[method]} {lr:g}": Row(method=method, settings={"lr": lr})
            for method, rates in GRID.items()
            for lr in rates
        },
    },
    seeds=(2021, 2022, 2023, 2024, 2025),  # the default was chosen on others
    figures=("accuracy-by-task", "stds", "learning-curves"),
    highlight="BGD",
    presets={
        "smoke": smoke(expected_time="20 s").model_copy(
            update={
                "columns": {
                    FADING: continuous_permuted_mnist.tasks(2, 15),
                    CIFAR: Setup(data=TINY_IMAGES, stream=StreamConfig(batch_size=20)),
                }
            }
        ),
        "quick": Preset(
            expected_time="10 min",
            about="minutes: one seed, 300 iterations a task, one epoch a task, 10,000 images of CIFAR10",
            seeds=(2019,),
            columns={
                FADING: continuous_permuted_mnist.tasks(5, 300),
                SPLIT: Setup(stream=StreamConfig(epochs=1)),
                CIFAR: Setup(data=DataConfig(train=10_000)),
            },
        ),
        "paper": Preset(
            expected_time="3 h",
            about="five tasks of 1,000 iterations, four epochs a task, one epoch of CIFAR10; five seeds",
        ),
    },
    notes=(
        "All rows are tested by their mean network, 2,000 images (permuted, CIFAR10).",
        "two networks: shared by the whole batch, as in the paper, with the std set by hand and capped.",
        STAND_IN,
    ),
)
