"""Continuous permuted MNIST: tasks that fade into each other (the paper's central figure)."""

from __future__ import annotations

from typing import Any

from bgd.experiments.builtin.presets import (
    ONE_PASS,
    ONE_PASS_LABEL,
    ONE_PASS_NOTE,
    PADDED,
    PAPER_SETTINGS,
    STAND_IN,
    paper,
    smoke,
)
from bgd.experiments.declaration import Experiment, Preset, Row
from bgd.runs.config import DataConfig, NetConfig, Setup, StreamConfig, TasksConfig, TestConfig

ITERATIONS = 9380  # of each task: 20 epochs of 469 batches
SETUP = Setup(
    data=PADDED,
    scenario="continuous task-agnostic",
    tasks=TasksConfig(kind="permute", seed=2019),
    stream=StreamConfig(kind="continuous", batch_size=128, beta=4.0),
    net=NetConfig(widths=(200, 200), init="xavier"),
    test=TestConfig(inference="mc"),
)
STD_INIT = 0.06
EVERY: dict[str, Any] = {"consolidate_every": 1, "optimizer": "sgd", "lr": 0.01}
EVERY_NOTE = (
    "Online EWC and MAS consolidate at every iteration, on its batch, with the importance of each sample. The penalty "
    "acts by its proximal step, which follows the optimizer's and divides the step of a weight by 1 + 2 lr c Omega: "
    "added to the loss, as at boundaries, it ends in a loss that is not finite (Online EWC with the paper's best, "
    "learning rate 0.01 and coefficient 0.1: after 5,771 iterations)."
)


def tasks(count: int, iterations: int = ITERATIONS) -> Setup:
    """A column with so many tasks, each with its share of the iterations.

    >>> tasks(10).stream.iterations
    93800
    """
    return Setup(tasks=TasksConfig(count=count), stream=StreamConfig(iterations=iterations * count))


EXPERIMENT = Experiment(
    name="continuous-permuted-mnist",
    title="Continuous permuted MNIST: no task boundaries at all",
    shows="The share of each task in a batch rises and falls slowly; the learner gets no information about tasks. In "
    "the paper BGD keeps a high accuracy over all tasks. Online EWC and MAS can only take part by consolidating at "
    "every iteration.",
    source="Figures 'Distribution of samples from each task' and 'Results on Continuous Permuted MNIST'",
    setup=SETUP,
    columns={"5 tasks": tasks(5), "10 tasks": tasks(10)},
    rows={
        "BGD": Row(method="bgd", settings=PAPER_SETTINGS | {"std_init": STD_INIT}),
        "BGD, std capped": Row(method="bgd", settings=PAPER_SETTINGS | {"std_init": STD_INIT, "std_max": "init"}),
        ONE_PASS_LABEL: Row(method="bgd", settings=ONE_PASS | {"std_init": STD_INIT}),
        "Online EWC": Row(method="online-ewc", settings=EVERY | {"coefficient": 0.1}),
        "MAS": Row(method="mas", settings=EVERY | {"coefficient": 0.001}),
        "SGD": Row(method="sgd", settings={"lr": 0.01}),
        "Adam": Row(method="adam", settings={"lr": 0.001}),
    },
    seeds=(2019, 2020, 2021),
    figures=("schedule", "accuracy-by-task", "stds", "learning-curves"),
    presets={
        "smoke": smoke(expected_time="5 s", stream=StreamConfig(batch_size=32)).model_copy(
            update={"columns": {"5 tasks": tasks(3, 20), "10 tasks": tasks(4, 20)}}
        ),
        "quick": Preset(
            expected_time="8 min",
            about="minutes: one seed, 400 iterations a task, 12,000 training images",
            seeds=(2019,),
            setup=Setup(data=DataConfig(train=12_000, test=2_000)),
            columns={"5 tasks": tasks(5, 400), "10 tasks": tasks(10, 400)},
        ),
        "paper": paper(
            "the paper's own scale: 9,380 iterations a task", expected_time="11 h", bgd=("BGD", "BGD, std capped")
        ),
    },
    notes=(
        "The paper shows these results as a figure, without numbers.",
        "BGD with std_init 0.06 can collapse in its first iterations (the run then reports it); the row with its stds "
        "capped at their initial value is ours.",
        ONE_PASS_NOTE,
        "The paper does not give the learning rates of SGD and Adam: 0.01, as for its other methods in this "
        "experiment, and 0.001.",
        EVERY_NOTE,
        "Permutations are the same for all seeds (their own seed is 2019).",
        STAND_IN,
    ),
)
