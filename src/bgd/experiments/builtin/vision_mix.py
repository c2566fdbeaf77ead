"""The vision mix: five data sets, one after the other (the paper's table, after Ritter et al.)."""

from __future__ import annotations

from bgd.experiments.builtin.cifar_10_100 import pairs
from bgd.experiments.builtin.presets import (
    IMAGES_STAND_IN,
    ONE_PASS,
    ONE_PASS_LABEL,
    ONE_PASS_NOTE,
    PAPER_SETTINGS,
    paper,
    smoke_images,
    tiny_mix,
)
from bgd.experiments.declaration import Experiment, Preset, Reported, Row
from bgd.runs.config import (
    AugmentConfig,
    DataConfig,
    NetConfig,
    SetConfig,
    Setup,
    StreamConfig,
    TasksConfig,
    TestConfig,
)

SETS = ("mnist", "notmnist", "fashion-mnist", "svhn", "cifar10")
MIX = (
    *(SetConfig(name=name) for name in SETS[:-1]),
    SetConfig(name=SETS[-1], augment=AugmentConfig(crop=4, flip=True)),
)
KINDS = {"PTL": "ptl", "AL": "al", "OL": "ol"}
CURVATURES = {"diagonal": "diagonal", "Kronecker": "kronecker"}
ACCURACY = """
BGD             81.37  86.42 89.23 83.05 82.21 65.96
SGD             69.64  84.79 82.12 65.91 52.31 63.08
Adam            29.67  17.39 26.26 25.02 15.10 64.62
SI              77.21  87.27 79.12 84.61 77.44 57.61
PTL, diagonal   82.96  97.83 94.73 89.13 79.80 53.29
AL, diagonal    82.55  96.56 92.33 89.27 78.00 56.57
OL, diagonal    82.71  96.48 93.41 88.09 81.79 53.80
PTL, Kronecker  85.32  97.85 94.92 89.31 85.75 58.78
AL, Kronecker   85.35  97.90 94.88 90.08 85.24 58.63
OL, Kronecker   85.40  97.17 94.78 90.36 85.59 59.11
"""
"""The average, then each task."""


def _reported() -> dict[str, dict[str, Reported]]:
    rows = {}
    for line in ACCURACY.strip().splitlines():
        parts = line.split()
        label, (mean, *tasks) = " ".join(parts[:-6]), map(float, parts[-6:])
        source = "" if label in ("BGD", "SGD", "Adam") else "Ritter et al. (2018)"
        rows[label] = {"accuracy": Reported(mean=mean, tasks=tuple(tasks), source=source)}
    return rows


EXPERIMENT = Experiment(
    name="vision-mix",
    title="Vision mix: MNIST, notMNIST, Fashion-MNIST, SVHN, CIFAR10",
    shows="Five data sets in a row, each with a head of its own. In the paper BGD, of the methods with a diagonal, "
    "learns the last tasks best; the Laplace approximations, which get task boundaries, forget less of the first "
    "ones.",
    source="Table 'Accuracy for each task after training sequentially on all tasks'",
    setup=Setup(
        data=DataConfig(mix=MIX, shape=(3, 32, 32), normalise="own"),
        scenario="task",
        tasks=TasksConfig(kind="mix"),
        stream=StreamConfig(kind="discrete", epochs=20, batch_size=64),
        net=NetConfig(name="lenet", init="xavier"),
        test=TestConfig(inference="mc"),
    ),
    rows={
        "BGD": Row(method="bgd", settings=PAPER_SETTINGS | {"std_init": 0.02}),
        ONE_PASS_LABEL: Row(method="bgd", settings=ONE_PASS | {"std_init": 0.02}),
        "SGD": Row(method="sgd", settings={"lr": 0.001}),
        "Adam": Row(method="adam", settings={"lr": 0.001}),
        "SI": Row(method="si", settings={"lr": 0.001, "coefficient": 0.1}),
        **{
            f"{label}, {shape}": Row(method="laplace", settings={"kind": kind, "curvature": curvature, "lr": 0.001})
            for shape, curvature in CURVATURES.items()
            for label, kind in KINDS.items()
        },
    },
    paper=_reported(),
    figures=("each-task", "accuracy-by-task", "stds", "matrix"),
    presets={
        "smoke": smoke_images(expected_time="1 min", data=tiny_mix(*pairs("digits"))),
        "quick": Preset(
            expected_time="3 min",
            about="minutes: one epoch on 1,000 images of each data set",
            setup=Setup(data=DataConfig(train=1_000, test=500), stream=StreamConfig(epochs=1)),
        ),
        "short": Preset(
            expected_time="30 min",
            about="four epochs on 3,000 images of each data set, 1,000 to test on",
            setup=Setup(data=DataConfig(train=3_000, test=1_000), stream=StreamConfig(epochs=4)),
        ),
        "paper": paper("the paper's own scale: 20 epochs on each whole data set, one seed", expected_time="2 days"),
    },
    notes=(
        ONE_PASS_NOTE,
        "The paper gives no momentum for SGD, and names no seeds: none, and 2019, are ours.",
        "The paper takes SI and the Laplace approximations from Ritter et al., who tuned their strength. Ours are not "
        "tuned, with Adam and 0.001: SI with c = 0.1, Laplace with lambda = 1, which is Bayes' rule.",
        "PTL, AL and OL: per-task, approximate and online Laplace. AL keeps 1,000 images of each old task.",
        "As in the authors' code, the hidden layer of 500 has no ReLU, each task's head is a layer of its own, and the "
        "training images of CIFAR10, those alone, are cropped from a frame of 4 zeros and mirrored at random.",
        "notMNIST is its small part of 10,000 letters, cut into 8,000 and 2,000.",
        IMAGES_STAND_IN,
    ),
)
