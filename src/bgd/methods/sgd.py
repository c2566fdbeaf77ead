"""Stochastic gradient descent."""

from __future__ import annotations

import torch
from torch import nn

from bgd.methods.base import Base
from bgd.methods.outputs import Outputs


class SGD(Base):
    """theta <- theta - lr g, and nothing against forgetting: the baseline.

    Args:
        net: any module that maps (B, ...) to scores (B, outputs).
        outputs: which outputs the loss runs over.
        lr: learning rate. Hsu et al.: 0.01 (Split, Permuted task), 0.001 (Permuted domain, class).
        momentum: 0 in all of the paper's MNIST experiments.

    >>> from bgd.scenarios.heads import Heads
    >>> SGD(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),)))).needs.name
    'NOTHING'
    """

    def __init__(self, net: nn.Module, outputs: Outputs, *, lr: float = 0.01, momentum: float = 0.0) -> None:
        super().__init__(net, outputs, torch.optim.SGD(net.parameters(), lr=lr, momentum=momentum))
