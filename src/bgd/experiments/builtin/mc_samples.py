"""The cost of Monte-Carlo samples: accuracy and time for K = 1, 2, 4, 10 against SGD."""

from __future__ import annotations

from bgd.experiments.builtin.continuous_permuted_mnist import SETUP as CONTINUOUS_SETUP
from bgd.experiments.builtin.continuous_permuted_mnist import tasks
from bgd.experiments.builtin.presets import PAPER_SETTINGS, STAND_IN, paper, smoke
from bgd.experiments.builtin.split_mnist import SETUP as SPLIT_SETUP
from bgd.experiments.declaration import Experiment, Preset, Row, RowInColumn
from bgd.experiments.layers import merge_setups
from bgd.runs.config import DataConfig, NetConfig, Setup, StreamConfig, TasksConfig, TestConfig

CONTINUOUS, SPLIT = "continuous permuted", "split class + trick"
STD_INIT = {CONTINUOUS: 0.06, SPLIT: 0.017}


def _bgd(samples: int, antithetic: bool, capped: bool) -> Row:
    settings = PAPER_SETTINGS | {"mc_samples": samples, "antithetic": antithetic}
    if capped:
        settings["std_max"] = "init"
    return Row(
        method="bgd",
        settings=settings,
        columns={column: RowInColumn(settings={"std_init": std}) for column, std in STD_INIT.items()},
    )


def _label(samples: int, antithetic: bool, capped: bool) -> str:
    return f"K = {samples}" + (", antithetic" if antithetic else "") + (", capped" if capped else "")


ROWS = {
    _label(samples, antithetic, capped): _bgd(samples, antithetic, capped)
    for samples in (1, 2, 4, 10)
    for antithetic in (False, True)
    for capped in (False, True)
    if samples > 1 or not antithetic  # antithetic noise comes in pairs
}

EXPERIMENT = Experiment(
    name="mc-samples",
    title="How many Monte-Carlo samples does BGD need?",
    shows="Time grows with K. Whether accuracy needs K = 10, and whether a cap on the stds or antithetic noise makes "
    "a smaller K as good, is the question.",
    source="Table 'Average runtime of a single training epoch with different numbers of Monte Carlo samples' (there on "
    "CIFAR10)",
    columns={
        CONTINUOUS: merge_setups(CONTINUOUS_SETUP, tasks(10)),
        SPLIT: merge_setups(
            SPLIT_SETUP,
            Setup(scenario="class", loss_over="batch", net=NetConfig(init="xavier"), test=TestConfig(inference="mc")),
        ),
    },
    rows={
        "SGD": Row(method="sgd", settings={"lr": 0.01}),
        **ROWS,
    },
    seeds=(2019, 2020, 2021),
    figures=("accuracy-by-task", "stds", "learning-curves"),
    times_of="SGD",
    highlight="K = 10",
    presets={
        "smoke": smoke(expected_time="20 s").model_copy(update={"columns": {CONTINUOUS: tasks(2, 15)}}),
        "quick": Preset(
            expected_time="7 min",
            about="minutes: one seed, 300 iterations a task (continuous), one epoch a task (split), fewer images",
            seeds=(2019,),
            setup=Setup(data=DataConfig(train=12_000, test=2_000)),
            columns={CONTINUOUS: tasks(5, 300), SPLIT: Setup(stream=StreamConfig(epochs=1), tasks=TasksConfig())},
        ),
        "short": paper(
            "all rows: five tasks, 1,000 iterations each, tested on 2,000 images (continuous), four epochs a task",
            expected_time="2 h",
            bgd=ROWS,
        ).model_copy(
            update={"columns": {CONTINUOUS: tasks(5, 1_000).model_copy(update={"data": DataConfig(test=2_000)})}}
        ),
        "paper": paper(
            "the length of the paper's runs: 9,380 iterations a task, four epochs a task",
            expected_time="30 h",
            bgd=ROWS,
        ),
    },
    notes=(
        "The paper reports that fewer samples do not affect accuracy on CIFAR10; these columns test it on MNIST.",
        "capped: no std may grow beyond its initial value; a collapsed posterior is reported as such.",
        STAND_IN,
    ),
)
