"""The demo: fading tasks, new classes and a stream that changes, on embedded data, in about a minute."""

from __future__ import annotations

from typing import Any

from bgd.experiments.declaration import Experiment, Preset, Row, RowInColumn
from bgd.runs.config import DataConfig, NetConfig, Setup, StreamConfig, TasksConfig, TestConfig

FADING, CLASSES, STREAM = "fading tasks", "new classes, no replay", "rewired sensors"
TRICK = " + labels trick"
TASK_AGNOSTIC = "continuous task-agnostic"

SETUP = Setup(
    data=DataConfig(name="digits", normalise="own"),
    net=NetConfig(widths=(100, 100), init="xavier"),
    test=TestConfig(inference="map"),
)
COLUMNS = {
    FADING: Setup(
        scenario=TASK_AGNOSTIC,
        tasks=TasksConfig(kind="permute", count=5, seed=2019),
        stream=StreamConfig(kind="continuous", iterations=3000, batch_size=32),
    ),
    CLASSES: Setup(
        scenario="class",
        tasks=TasksConfig(kind="split", count=5),
        stream=StreamConfig(kind="discrete", epochs=10, batch_size=32),
        loss_over="all",
    ),
    STREAM: Setup(
        data=DataConfig(name="digits-rewired"),
        scenario=TASK_AGNOSTIC,
        stream=StreamConfig(kind="prequential", batch_size=16),
        test=TestConfig(evaluations=36),
    ),
}
ONE_PASS = Setup(stream=StreamConfig(epochs=1))
WITH_TRICK = Setup(loss_over="batch")
EVERY: dict[str, Any] = {"consolidate_every": 1, "optimizer": "sgd"}

TUNED: dict[str, dict[str, dict[str, Any]]] = {
    "BGD, tuned": {FADING: {"std_init": 0.2}, STREAM: {"std_init": 0.05}},
    "SGD": {FADING: {"lr": 0.1}, CLASSES: {"lr": 0.001}, STREAM: {"lr": 0.1}},
    "SGD" + TRICK: {CLASSES: {"lr": 0.03}},
    "Adam": {FADING: {"lr": 0.001}, CLASSES: {"lr": 0.0001}, STREAM: {"lr": 0.003}},
    "Online EWC": {
        FADING: {"lr": 0.1, "coefficient": 10},
        CLASSES: {"lr": 0.0001, "coefficient": 1000},
        STREAM: {"lr": 0.1, "coefficient": 1},
    },
}
"""The best setting of each method in each column, by the experiment digits-search; a test compares."""


def baseline(label: str, method: str) -> Row:
    """A row at its tuned settings.

    >>> baseline("SGD", "sgd").columns[STREAM].settings
    {'lr': 0.1}
    """
    tuned = TUNED[label]
    columns = {column: RowInColumn(settings=in_column(method, column) | own) for column, own in tuned.items()}
    setup = WITH_TRICK if label.endswith(TRICK) else Setup()
    return Row(method=method, setup=setup, columns=columns, only=None if len(tuned) == len(COLUMNS) else tuple(tuned))


def in_column(method: str, column: str) -> dict[str, Any]:
    """What a method needs where nobody tells it of boundaries.

    >>> in_column("online-ewc", FADING)["consolidate_every"], in_column("online-ewc", CLASSES), in_column("sgd", FADING)
    (1, {}, {})
    """
    return EVERY if method == "online-ewc" and column != CLASSES else {}


EXPERIMENT = Experiment(
    name="digits",
    title="The demo: learning what changes, on 8x8 digits",
    shows="Left: five tasks that fade into each other; nobody says when. Middle: two new classes at a time, none of "
    "the old ones again. Right: a stream whose sensors are rewired twice, predicted before it is learnt. "
    "BGD, the exact head and StreamClassifier run as they come; what else is here is tuned.",
    setup=SETUP,
    columns=COLUMNS,
    rows={
        "BGD": Row(method="bgd"),
        "BGD, tuned": baseline("BGD, tuned", "bgd"),
        "BGD" + TRICK: Row(method="bgd", setup=WITH_TRICK, only=(CLASSES,)),
        "Exact head": Row(method="exact-head", settings={"units": 1000}, setup=ONE_PASS, only=(CLASSES,)),
        "StreamClassifier": Row(method="bgd.methods.stream_classifier:StreamLearner", only=(STREAM,)),
        "SGD": baseline("SGD", "sgd"),
        "SGD" + TRICK: baseline("SGD" + TRICK, "sgd"),
        "Adam": baseline("Adam", "adam"),
        "Online EWC": baseline("Online EWC", "online-ewc"),
    },
    seeds=(2019, 2020, 2021),
    figures=("accuracy-by-task", "learning-curves", "schedule", "stds"),
    presets={
        "smoke": Preset(
            expected_time="5 s",
            about="seconds: does it run?",
            seeds=(2019,),
            setup=Setup(net=NetConfig(widths=(32, 32))),
            columns={
                FADING: Setup(stream=StreamConfig(iterations=150), tasks=TasksConfig(count=3)),
                CLASSES: Setup(stream=StreamConfig(epochs=1)),
                STREAM: Setup(data=DataConfig(train=320), test=TestConfig(evaluations=5)),
            },
            settings={"Exact head": {"units": 100}},
        ),
        "quick": Preset(expected_time="1 min", about="about a minute on two cores: the demo", seeds=(2019, 2020)),
        "paper": Preset(expected_time="2 min", about="three seeds (this demo is not in the paper)"),
    },
    notes=(
        "Tuned: SGD, Adam and BGD (its std_init) have the best of four settings in each column, Online EWC the best of "
        "eight, by the mean on seeds 101 and 102, which are not shown here, on the same test images; `bgd show "
        "digits-search` lists them. BGD, the exact head and StreamClassifier are the defaults.",
        "The exact head sees every image once, the networks ten times.",
    ),
)
