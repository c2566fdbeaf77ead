"""What the presets have in common.

``smoke`` takes seconds and needs neither files nor network: the embedded digits, padded, replace MNIST; in frames of
32 x 32, colour images.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bgd.experiments.declaration import Preset
from bgd.runs.config import DataConfig, NetConfig, SetConfig, Setup, StreamConfig, TestConfig

STAND_IN = "In the preset smoke the embedded digits (8x8, padded) replace MNIST: its numbers mean nothing."
IMAGES_STAND_IN = "In the preset smoke a few embedded digits replace the images: its numbers mean nothing."
HSU = "Hsu et al. (2018)"
PADDED = DataConfig(name="mnist", pad=2, normalise="padded-mnist")
PAPER_SETTINGS: dict[str, Any] = {
    "estimator": "shared",
    "mc_samples": 10,
    "lr": 1.0,
    "std_max": None,
    "max_move": None,
    "boost": None,
    "nonfinite": "skip",
}
"""As the paper runs it; but where its authors' training stops at a loss that is not a number, a run here goes on to its
end, at chance, and reports the collapse."""
ONE_PASS: dict[str, Any] = PAPER_SETTINGS | {"estimator": "per_example", "mc_samples": 1}
"""The paper's, but for the estimate: every example has noise of its own, in one forward and backward pass."""
ONE_PASS_LABEL = "BGD, one pass"
ONE_PASS_NOTE = (
    "BGD, one pass: one forward and backward pass, each image with noise of its own; all else as in the paper."
)
FAST: dict[str, Any] = {"noise": "hash", "compile": None}
TINY = DataConfig(name="digits", pad=2, normalise="own", train=400, test=200)
TINY_IMAGES = DataConfig(name="digits", shape=(3, 32, 32), normalise="own", train=40, test=20)


def tiny_mix(*sets: SetConfig) -> DataConfig:
    """A few of the embedded digits in frames of 32 x 32, as a mix of tasks.

    >>> tiny_mix(SetConfig(name="digits", classes=(0, 1))).shape
    (3, 32, 32)
    """
    return DataConfig(mix=sets, shape=(3, 32, 32), normalise="own", train=40, test=20)


def smoke(expected_time: str = "", **setup: object) -> Preset:
    """Seconds, on a few digits; ``setup`` overrides it.

    >>> smoke(tasks={"count": 2}).setup.tasks.count
    2
    """
    small: dict[str, object] = {
        "data": TINY,
        "net": NetConfig(widths=(32, 32)),
        "stream": StreamConfig(batch_size=64, epochs=1),
    }
    return Preset(
        about="on a few of the embedded digits instead of MNIST: does it run?",
        expected_time=expected_time,
        seeds=(2019,),
        setup=Setup.model_validate(small | setup),
    )


def smoke_images(expected_time: str = "", bgd: Iterable[str] = ("BGD",), **setup: object) -> Preset:
    """Seconds, with the network of the experiment on a few digits in frames; K = 2 in the rows ``bgd``.

    >>> smoke_images().setup.data.shape
    (3, 32, 32)
    """
    small: dict[str, object] = {
        "data": TINY_IMAGES,
        "stream": StreamConfig(batch_size=20, epochs=1),
        "test": TestConfig(evaluations=1, samples=2),
    }
    return Preset(
        about="on a few of the embedded digits instead of the images: does it run?",
        expected_time=expected_time,
        seeds=(2019,),
        setup=Setup.model_validate(small | setup),
        settings={label: {"mc_samples": 2} for label in bgd},
    )


def paper(about: str = "the paper's own scale", expected_time: str = "", bgd: Iterable[str] = ("BGD",)) -> Preset:
    """As declared; the rows ``bgd`` compute their steps faster, which pays off in runs of minutes.

    >>> paper().settings
    {'BGD': {'noise': 'hash', 'compile': None}}
    """
    return Preset(about=about, expected_time=expected_time, settings={label: dict(FAST) for label in bgd})
