"""Adagrad (Duchi et al., 2011)."""

from __future__ import annotations

from torch import nn

from bgd.methods.common.base import Base, optimizer_for
from bgd.methods.common.outputs import Outputs


class Adagrad(Base):
    """theta <- theta - lr g / sqrt(sum of g^2 so far): weights with a history of gradients slow down.

    Args:
        lr: learning rate. Hsu et al.: 0.01 (Split), 0.001 (Permuted).

    >>> from bgd.scenarios.heads import Heads
    >>> learner = Adagrad(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),))))
    >>> learner.optimizer.defaults["lr"]
    0.01
    """

    def __init__(self, net: nn.Module, outputs: Outputs, *, lr: float = 0.01) -> None:
        super().__init__(net, outputs, optimizer_for(net.parameters(), "adagrad", lr))
