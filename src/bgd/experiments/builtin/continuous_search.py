"""The search behind continuous permuted MNIST (the paper's figure of hyper-parameters)."""

from __future__ import annotations

from bgd.experiments.builtin.continuous_permuted_mnist import EVERY_NOTE, ITERATIONS, SETUP, tasks
from bgd.experiments.builtin.presets import STAND_IN, paper, smoke
from bgd.experiments.declaration import Experiment, Preset, Row, RowInColumn
from bgd.experiments.layers import merge_setups
from bgd.runs.config import DataConfig, Setup, StreamConfig

COEFFICIENTS = (10, 0.1, 0.001, 0.0001)
OPTIMIZERS = {"SGD": "sgd", "Adam": "adam"}


def _row(method: str, optimizer: str, lr: float) -> Row:
    return Row(
        method=method,
        settings={"consolidate_every": 1, "optimizer": optimizer, "lr": lr},
        columns={f"coefficient {c:g}": RowInColumn(settings={"coefficient": c}) for c in COEFFICIENTS},
    )


EXPERIMENT = Experiment(
    name="continuous-search",
    title="Online EWC and MAS on continuous permuted MNIST: the paper's search",
    shows="Every combination that the paper tried; its best are SGD, learning rate 0.01, with coefficient 0.1 "
    "(Online EWC) and 0.001 (MAS).",
    source="Figure 'Hyper-parameters search for continuous permuted MNIST experiment'",
    setup=merge_setups(SETUP, tasks(5, ITERATIONS)),
    columns={f"coefficient {c:g}": Setup() for c in COEFFICIENTS},
    rows={
        f"{label}, {name}, lr {lr:g}": _row(method, optimizer, lr)
        for label, method in (("Online EWC", "online-ewc"), ("MAS", "mas"))
        for name, optimizer in OPTIMIZERS.items()
        for lr in (0.01, 0.0001)
    },
    seeds=(2019,),
    figures=("accuracy-by-task",),
    presets={
        "smoke": smoke(expected_time="5 s", tasks=tasks(2).tasks, stream=StreamConfig(batch_size=32, iterations=20)),
        "quick": Preset(
            expected_time="8 min",
            about="minutes: 300 iterations a task, 12,000 training images",
            seeds=(2019,),
            setup=merge_setups(Setup(data=DataConfig(train=12_000, test=2_000)), tasks(5, 300)),
        ),
        "short": paper("every combination, 1,000 iterations a task", expected_time="25 min", bgd=()).model_copy(
            update={"setup": tasks(5, 1_000)}
        ),
        "paper": paper("five tasks, 9,380 iterations each, one seed", expected_time="4 h", bgd=()),
    },
    notes=(
        EVERY_NOTE,
        "With Adam the proximal step takes Adam's learning rate as it is, without Adam's scaling of each weight.",
        STAND_IN,
    ),
)
