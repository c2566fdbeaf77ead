"""Offline training on all tasks at once: the upper bound."""

from __future__ import annotations

from torch import nn

from bgd.methods.common.base import Base, optimizer_for
from bgd.methods.common.outputs import Outputs


class Offline(Base):
    """Ordinary training on the data of all tasks, shuffled together: what one reaches without forgetting.

    The learner itself is plain gradient descent. What makes it offline is its data: ``joint = True`` asks the
    runner for one stream over the union of all tasks, as many epochs as a task has. With separate heads and
    the task given, a batch then mixes tasks, and carries the task of each sample as a (B,) tensor.

    Args:
        net: any module that maps (B, ...) to scores (B, outputs).
        outputs: which outputs the loss runs over.
        lr: learning rate.
        optimizer: "sgd", "adam" or "adagrad".

    >>> from bgd.scenarios.heads import Heads
    >>> Offline(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),)))).joint
    True
    """

    joint = True
    upper_bound = True

    def __init__(self, net: nn.Module, outputs: Outputs, *, lr: float = 0.001, optimizer: str = "adam") -> None:
        super().__init__(net, outputs, optimizer_for(net.parameters(), optimizer, lr))
