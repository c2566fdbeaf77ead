"""What the presets of the MNIST experiments have in common.

``smoke`` takes seconds and needs neither files nor network: the embedded digits, padded, stand in for MNIST.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bgd.experiments.types import Preset
from bgd.runs.types import DataConfig, NetConfig, Setup, StreamConfig

STAND_IN = "In the preset smoke the embedded digits (8x8, padded) stand in for MNIST: its numbers mean nothing."
HSU = "Hsu et al. (2018)"
PADDED = DataConfig(name="mnist", pad=2, normalise="padded-mnist")
BGD: dict[str, Any] = {"mc_samples": 10, "lr": 1.0, "nonfinite": "skip"}
"""As the paper runs it; like its authors' code, a posterior that blows up goes on to the end, and is then reported."""
FAST: dict[str, Any] = {"noise": "hash", "compile": None}
TINY = DataConfig(name="digits", pad=2, normalise="own", train=400, test=200)


def smoke(**setup: object) -> Preset:
    """Seconds, on a few digits; ``setup`` stands over it.

    >>> smoke(tasks={"count": 2}).setup.tasks.count
    2
    """
    small: dict[str, object] = {
        "data": TINY,
        "net": NetConfig(widths=(32, 32)),
        "stream": StreamConfig(batch_size=64, epochs=1),
    }
    return Preset(
        about="seconds, on a few of the embedded digits in place of MNIST: does it run?",
        seeds=(2019,),
        setup=Setup.model_validate(small | setup),
    )


def paper(about: str = "the paper's own scale", bgd: Iterable[str] = ("BGD",)) -> Preset:
    """As declared; the rows ``bgd`` take the faster path, which pays in runs of minutes.

    >>> paper().settings
    {'BGD': {'noise': 'hash', 'compile': None}}
    """
    return Preset(about=about, settings={label: dict(FAST) for label in bgd})
