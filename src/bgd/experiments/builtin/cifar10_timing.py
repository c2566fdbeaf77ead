"""What a training epoch costs with K sampled networks, against SGD (the paper's table of run times)."""

from __future__ import annotations

from bgd.experiments.builtin.cifar10_vgg import SETUP, SGD, STEEP
from bgd.experiments.builtin.presets import IMAGES_STAND_IN, ONE_PASS, ONE_PASS_LABEL, smoke_images
from bgd.experiments.declaration import Experiment, Preset, Reported, Row
from bgd.runs.config import DataConfig, Setup, StreamConfig, TestConfig

SAMPLES = {2: (89.31, 18.9), 4: (89.32, 35.2), 10: (89.04, 83.8)}
"""Accuracy and seconds an epoch by K, in the paper."""
AT_ONCE = "K = 10, batched"

EXPERIMENT = Experiment(
    name="cifar10-timing",
    title="The run time of BGD on CIFAR10",
    shows="In the paper time grows linearly with the number of sampled networks, about as K times that of SGD; "
    "accuracy does not.",
    source="Table 'Average runtime of a single training epoch with different numbers of Monte Carlo samples'",
    setup=SETUP,
    rows={
        "SGD": Row(method="sgd", settings=SGD),
        **{f"K = {k}": Row(method="bgd", settings=STEEP | {"batched": False, "mc_samples": k}) for k in SAMPLES},
        AT_ONCE: Row(method="bgd", settings=STEEP | {"chunk_size": 10}),
        ONE_PASS_LABEL: Row(method="bgd", settings=ONE_PASS | {key: STEEP[key] for key in ("std_init", "lr")}),
    },
    paper={
        "SGD": {"accuracy": Reported(seconds=7.8)},
        **{f"K = {k}": {"accuracy": Reported(mean=mean, seconds=time)} for k, (mean, time) in SAMPLES.items()},
    },
    figures=("learning-curves",),
    times_of="SGD",
    presets={
        "smoke": smoke_images(expected_time="1 min", bgd=()),
        "quick": Preset(
            expected_time="2 min",
            about="minutes: one epoch on 384 images",
            setup=Setup(
                data=DataConfig(train=384, test=256), stream=StreamConfig(epochs=1), test=TestConfig(evaluations=1)
            ),
        ),
        "short": Preset(
            expected_time="4 min",
            about="one epoch on 640 images: for the times, not for the accuracies",
            setup=Setup(
                data=DataConfig(train=640, test=256), stream=StreamConfig(epochs=1), test=TestConfig(evaluations=1)
            ),
        ),
        "paper": Preset(expected_time="80 days", about="400 epochs, one seed"),
    },
    notes=(
        "The paper does not name the network. Its 89 % is nearest to that of the VGG16-like network without "
        "BatchNorm (88.41 with K = 10), which is used, with the settings of that experiment.",
        "The paper's times are those of a GeForce GTX 1080 Ti and of all 50,000 images: compare the ratios.",
        "K networks one after the other, as the paper's; batched evaluates them side by side. One pass: "
        "each image has noise of its own, and there are no K networks.",
        "On a CPU the seconds are processor time: measure with one thread, and with --no-reuse, so that all rows are "
        "measured in one go.",
        IMAGES_STAND_IN,
    ),
)
