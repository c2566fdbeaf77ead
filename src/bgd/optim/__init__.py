"""The optimizers: Gaussian posteriors over the weights, learned online. BGD, and its relatives."""

from bgd.optim.badam import BAdam
from bgd.optim.bgd import BGD
from bgd.optim.bong import BONG
from bgd.optim.continual_backprop import ContinualBackprop
from bgd.optim.diagnostics import CollapseWarning, SettingsWarning
from bgd.optim.estimators.batched import BatchedStep
from bgd.optim.estimators.distributed import DistributedBGD
from bgd.optim.finder import StdSearch, find_std_init
from bgd.optim.foovb import FOOVB
from bgd.optim.ivon import IVON
from bgd.optim.mesu import MESU
from bgd.optim.upgd import UPGD

__all__ = [
    "BGD",
    "BONG",
    "FOOVB",
    "IVON",
    "MESU",
    "UPGD",
    "BAdam",
    "BatchedStep",
    "CollapseWarning",
    "ContinualBackprop",
    "DistributedBGD",
    "SettingsWarning",
    "StdSearch",
    "find_std_init",
]
