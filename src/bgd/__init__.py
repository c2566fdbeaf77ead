"""Learn from data that changes over time, without forgetting and without being told when it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bgd._version import __version__
from bgd.inference import Prediction, predict
from bgd.losses import labels_trick
from bgd.optim import BGD, BatchedStep, CollapseWarning, DistributedBGD, SettingsWarning, StdSearch, find_std_init

if TYPE_CHECKING:
    from bgd.api import run_experiment
    from bgd.streams.estimators import StreamClassifier, StreamRegressor

_WITH_EXTRA = {
    "StreamClassifier": ("bgd.streams.estimators", "streams"),
    "StreamRegressor": ("bgd.streams.estimators", "streams"),
    "run_experiment": ("bgd.api", "experiments"),
}
"""Loaded when first used: they need more than torch and numpy."""

__all__ = [
    "BGD",
    "BatchedStep",
    "CollapseWarning",
    "DistributedBGD",
    "Prediction",
    "SettingsWarning",
    "StdSearch",
    "StreamClassifier",
    "StreamRegressor",
    "__version__",
    "find_std_init",
    "labels_trick",
    "predict",
    "run_experiment",
]


def __getattr__(name: str) -> Any:
    if name not in _WITH_EXTRA:
        raise AttributeError(f"module 'bgd' has no attribute {name!r}")
    from importlib import import_module

    from bgd.errors import MissingExtraError

    module, extra = _WITH_EXTRA[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("bgd", ""):
            raise
        raise MissingExtraError(str(error.name), extra) from None
