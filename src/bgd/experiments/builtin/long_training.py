"""5,000 epochs: does the posterior collapse, does accuracy fall? (the paper's figures of long training)."""

from __future__ import annotations

from bgd.experiments.builtin import cifar10_vgg
from bgd.experiments.builtin.presets import (
    IMAGES_STAND_IN,
    ONE_PASS,
    ONE_PASS_LABEL,
    ONE_PASS_NOTE,
    PAPER_SETTINGS,
    TINY,
    TINY_IMAGES,
    paper,
    smoke,
)
from bgd.experiments.declaration import Experiment, Preset, Row, RowInColumn
from bgd.runs.config import DataConfig, NetConfig, Setup, StreamConfig, TasksConfig, TestConfig

MNIST, CIFAR10 = "MNIST, MLP", "CIFAR10, VGG11"
STEEP = "BGD, eta = 10"

EXPERIMENT = Experiment(
    name="long-training",
    title="5,000 epochs of BGD",
    shows="In the paper the loss on the training images falls and stays low, test accuracy does not drop, and the "
    "stds converge instead of vanishing: neither underfitting nor pruning.",
    source="Figures 'Average log-likelihood cost function', 'Histogram of STD values' and 'Test accuracy and train "
    "accuracy' of MNIST, and 'Test accuracy on CIFAR10 using VGG11'",
    setup=Setup(
        scenario="discrete task-agnostic",
        tasks=TasksConfig(kind="whole", count=1),
        stream=StreamConfig(kind="discrete", epochs=5_000, batch_size=128),
        test=TestConfig(inference="mc", evaluations=500, train=10_000, stds=10),
    ),
    columns={
        MNIST: Setup(data=DataConfig(name="mnist", train=50_000, normalise="unit"), net=NetConfig(widths=(400, 400))),
        CIFAR10: Setup(
            data=cifar10_vgg.SETUP.data,
            net=NetConfig(name="vgg11", init="he-out"),
            stream=StreamConfig(augment=cifar10_vgg.SETUP.stream.augment),
        ),
    },
    rows={
        "BGD": Row(method="bgd", settings=PAPER_SETTINGS | {"std_init": 0.05}, only=(MNIST,)),
        STEEP: Row(method="bgd", settings=cifar10_vgg.STEEP, only=(CIFAR10,)),
        ONE_PASS_LABEL: Row(
            method="bgd",
            settings=ONE_PASS | {"std_init": 0.05},
            columns={CIFAR10: RowInColumn(settings={key: cifar10_vgg.STEEP[key] for key in ("std_init", "lr")})},
        ),
    },
    figures=("learning-curves", "stds"),
    presets={
        "smoke": smoke(
            expected_time="1 min",
            stream=StreamConfig(batch_size=20, epochs=2),
            test=TestConfig(evaluations=2, samples=2, train=20, stds=2),
        ).model_copy(
            update={
                "columns": {
                    MNIST: Setup(data=TINY, net=NetConfig(widths=(32, 32))),
                    CIFAR10: Setup(data=TINY_IMAGES, net=NetConfig(name="vgg11")),
                },
                "settings": {"BGD": {"mc_samples": 2}, STEEP: {"mc_samples": 2}},
            }
        ),
        "quick": Preset(
            expected_time="2 min",
            about="minutes: 20 epochs on 2,560 digits; four on 256 photographs with K = 2",
            settings={STEEP: {"mc_samples": 2}},
            setup=Setup(test=TestConfig(evaluations=20, train=256, stds=4)),
            columns={
                MNIST: Setup(data=DataConfig(train=2_560, test=1_000), stream=StreamConfig(epochs=20)),
                CIFAR10: Setup(
                    data=DataConfig(train=256, test=256), stream=StreamConfig(epochs=4), test=TestConfig(evaluations=4)
                ),
            },
        ),
        "short": Preset(
            expected_time="10 min",
            about="shortened: 100 epochs on 2,560 digits; 8 on 512 photographs with K = 2",
            settings={STEEP: {"mc_samples": 2}},
            setup=Setup(test=TestConfig(evaluations=50, train=1_000, stds=10)),
            columns={
                MNIST: Setup(data=DataConfig(train=2_560, test=2_000), stream=StreamConfig(epochs=100)),
                CIFAR10: Setup(
                    data=DataConfig(train=512, test=250),
                    stream=StreamConfig(epochs=8),
                    test=TestConfig(evaluations=8, train=250),
                ),
            },
        ),
        "paper": paper(
            "the paper's own scale: 5,000 epochs on all images, one seed", expected_time="260 days", bgd=("BGD", STEEP)
        ),
    },
    notes=(
        "The paper shows these results as figures, without numbers, and names no seed: 2019 is ours.",
        ONE_PASS_NOTE,
        "VGG11: std_init, eta, initialisation, crops and flips are those of the VGG16-like network without BatchNorm: "
        "the paper does not mention them, nor BatchNorm.",
        "Accuracy and loss on training images are those of the first 10,000 (fewer in other presets), not augmented.",
        IMAGES_STAND_IN,
    ),
)
