"""CIFAR10, then five tasks of CIFAR100 (two of the paper's figures, after Zenke et al.)."""

from __future__ import annotations

from bgd.experiments.builtin.presets import IMAGES_STAND_IN, PAPER_SETTINGS, paper, smoke_images, tiny_mix
from bgd.experiments.declaration import Experiment, Preset, Row
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

CIFAR100 = tuple(SetConfig(name="cifar100", classes=tuple(range(10 * i, 10 * i + 10))) for i in range(5))


def pairs(name: str) -> tuple[SetConfig, ...]:
    """Five tasks of two classes each, in order, from one data set.

    >>> [one.classes for one in pairs("cifar10")][:2]
    [(0, 1), (2, 3)]
    """
    return tuple(SetConfig(name=name, classes=(2 * i, 2 * i + 1)) for i in range(5))


EXPERIMENT = Experiment(
    name="cifar-10-100",
    title="CIFAR10, then five times ten classes of CIFAR100",
    shows="Accuracy on each task when all have been learnt: in the paper BGD, which gets no task boundaries, "
    "is between keeping the old and learning the new. As tasks go by, ever more stds fall below where they began.",
    source="Figures 'Test accuracy per task on last epoch for continual learning on CIFAR10 and subsets of CIFAR100' "
    "and 'The histogram of STD values' beside it",
    setup=Setup(
        data=DataConfig(mix=(SetConfig(name="cifar10"), *CIFAR100), normalise="own"),
        scenario="task",
        tasks=TasksConfig(kind="mix"),
        stream=StreamConfig(kind="discrete", epochs=150, batch_size=256, augment=AugmentConfig(crop=4, flip=True)),
        net=NetConfig(name="zenke", init="xavier"),
        test=TestConfig(inference="map"),
    ),
    rows={
        "BGD": Row(method="bgd", settings=PAPER_SETTINGS | {"std_init": 0.019, "lr": 2.0}),
        "SGD": Row(method="sgd", settings={"lr": 0.01}),
        "SI": Row(method="si", settings={"lr": 0.001, "coefficient": 0.01, "damping": 0.001}),
    },
    figures=("each-task", "stds", "accuracy-by-task", "matrix"),
    presets={
        "smoke": smoke_images(expected_time="20 s", data=tiny_mix(*pairs("digits"))),
        "quick": Preset(
            expected_time="3 min",
            about="minutes, with a substitute for CIFAR100: five two-class tasks of CIFAR10, two epochs on 512 images "
            "each",
            setup=Setup(data=DataConfig(mix=pairs("cifar10"), train=512, test=400), stream=StreamConfig(epochs=2)),
        ),
        "short": Preset(
            expected_time="8 min",
            about="with a substitute for CIFAR100: five two-class tasks of CIFAR10, two epochs on 1,280 images each",
            setup=Setup(data=DataConfig(mix=pairs("cifar10"), train=1_280, test=500), stream=StreamConfig(epochs=2)),
        ),
        "paper": paper(
            "the paper's own scale: CIFAR10 and CIFAR100, 150 epochs a task, one seed", expected_time="5 days"
        ),
    },
    notes=(
        "The paper shows these results as a figure, without numbers, and names no seeds: 2019 is ours.",
        "Training images are cropped from a frame of 4 zeros and mirrored at random, as the authors' code loads CIFAR.",
        "The presets quick and short need no CIFAR100: they cut CIFAR10 into five tasks of two classes.",
        "The paper does not give the classes of each task of CIFAR100: the first fifty, ten by ten, in their order.",
        "SI on Adam with learning rate 0.001 and damping 0.001, as Zenke et al., who also make a new Adam for a task "
        "(ours continues); SGD without momentum, which the paper does not mention.",
        IMAGES_STAND_IN,
    ),
)
