"""The optimizer: a Gaussian posterior over the weights, learned online."""

from bgd.optim.bgd import BGD
from bgd.optim.diagnostics import CollapseWarning, SettingsWarning
from bgd.optim.estimators.batched import BatchedStep
from bgd.optim.estimators.distributed import DistributedBGD
from bgd.optim.finder import StdSearch, find_std_init

__all__ = ["BGD", "BatchedStep", "CollapseWarning", "DistributedBGD", "SettingsWarning", "StdSearch", "find_std_init"]
