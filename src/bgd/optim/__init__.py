"""The optimizer: a Gaussian posterior over the weights, learned online."""

from bgd.optim.batched import BatchedStep
from bgd.optim.bgd import BGD, PAPER
from bgd.optim.distributed import DistributedBGD
from bgd.optim.health import CollapseWarning

__all__ = ["BGD", "PAPER", "BatchedStep", "CollapseWarning", "DistributedBGD"]
