"""Learn from data that changes over time, without forgetting and without being told when it changes."""

from bgd._version import __version__
from bgd.inference import Prediction, predict
from bgd.losses import labels_trick
from bgd.optim import BGD, PAPER, BatchedStep, CollapseWarning, DistributedBGD

__all__ = [
    "BGD",
    "PAPER",
    "BatchedStep",
    "CollapseWarning",
    "DistributedBGD",
    "Prediction",
    "__version__",
    "labels_trick",
    "predict",
]
