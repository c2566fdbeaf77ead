"""MNIST classification: one task, the usual way (the paper's table, and the start of its 5,000-epoch figures)."""

from __future__ import annotations

from bgd.experiments.builtin.presets import (
    ONE_PASS,
    ONE_PASS_LABEL,
    ONE_PASS_NOTE,
    PAPER_SETTINGS,
    STAND_IN,
    paper,
    smoke,
)
from bgd.experiments.declaration import Experiment, Preset, Reported, Row, RowInColumn
from bgd.runs.config import DataConfig, NetConfig, Setup, StreamConfig, TasksConfig, TestConfig

WIDTHS = (400, 800, 1200)
STD_INIT = {400: 0.05, 800: 0.05, 1200: 0.04}
ACCURACY = {"BBB": (98.18, 98.01, 97.96), "BGD": (98.26, 98.33, 98.22), "SGD": (98.17, 98.16, 98.12)}


def _stds() -> dict[str, RowInColumn]:
    return {f"width {w}": RowInColumn(settings={"std_init": std}) for w, std in STD_INIT.items()}


EXPERIMENT = Experiment(
    name="mnist-classification",
    title="MNIST classification: BGD as an ordinary optimizer",
    shows="In the paper BGD on a single task is as accurate as SGD and Bayes by backprop, and its stds do not "
    "collapse to zero.",
    source="Table 'Test accuracy for MNIST classification'",
    setup=Setup(
        data=DataConfig(name="mnist", train=50_000, normalise="unit"),
        scenario="discrete task-agnostic",
        tasks=TasksConfig(kind="whole", count=1),
        stream=StreamConfig(kind="discrete", epochs=600, batch_size=128),
        test=TestConfig(inference="mc", evaluations=60),
    ),
    columns={f"width {w}": Setup(net=NetConfig(widths=(w, w))) for w in WIDTHS},
    rows={
        "BBB": Row(method="bbb", settings={"lr": 0.001}, columns=_stds()),
        "BGD": Row(method="bgd", settings=PAPER_SETTINGS, columns=_stds()),
        ONE_PASS_LABEL: Row(method="bgd", settings=ONE_PASS, columns=_stds()),
        "SGD": Row(method="sgd", settings={"lr": 0.1}),
    },
    seeds=(2019,),
    paper={
        row: {
            f"width {w}": Reported(mean=mean, source="" if row == "BGD" else "Blundell et al. (2015)")
            for w, mean in zip(WIDTHS, means, strict=True)
        }
        for row, means in ACCURACY.items()
    },
    figures=("learning-curves", "stds"),
    highlight="BGD",
    presets={
        "smoke": smoke(expected_time="5 s", test=TestConfig(evaluations=4)).model_copy(
            update={"columns": {f"width {w}": Setup(net=NetConfig(widths=(w // 20, w // 20))) for w in WIDTHS}}
        ),
        "quick": Preset(
            expected_time="6 min",
            about="minutes: two epochs",
            seeds=(2019,),
            setup=Setup(stream=StreamConfig(epochs=2), data=DataConfig(train=20_000), test=TestConfig(evaluations=20)),
        ),
        "short": paper("five epochs instead of 600", expected_time="35 min").model_copy(
            update={"setup": Setup(stream=StreamConfig(epochs=5), test=TestConfig(evaluations=10))}
        ),
        "paper": paper("the paper's own scale: 600 epochs", expected_time="3 days"),
    },
    notes=(
        "The first 50,000 training images are used, as in the paper; the 10,000 of its validation set are left out.",
        ONE_PASS_NOTE,
        "BBB has the same prior as BGD (its initial posterior). The learning rates of BBB (Adam, 0.001) and SGD (0.1) "
        "are ours: the paper takes these rows from Blundell et al.",
        STAND_IN,
    ),
)
