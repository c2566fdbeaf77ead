"""Stochastic gradient descent."""

from __future__ import annotations

import torch
from torch import nn

from bgd.methods.common.base import Base
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.types import MethodError
from bgd.scenarios.types import Batch
from bgd.validation import check_whole


class SGD(Base):
    """theta <- theta - lr g, and nothing against forgetting: the baseline.

    Args:
        lr: learning rate. Hsu et al.: 0.01 (Split, Permuted task), 0.001 (Permuted domain, class).
        momentum: 0 in all of the paper's MNIST experiments, 0.9 on CIFAR10.
        decay_every: iterations after which lr is divided by ``decay_by``, repeatedly; None for a constant lr. 100
            epochs on CIFAR10.
        decay_by: 10 on CIFAR10.

    >>> from bgd.scenarios.heads import Heads
    >>> SGD(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),)))).needs.name
    'NOTHING'
    """

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        lr: float = 0.01,
        momentum: float = 0.0,
        decay_every: int | None = None,
        decay_by: float = 10.0,
    ) -> None:
        super().__init__(net, outputs, torch.optim.SGD(net.parameters(), lr=lr, momentum=momentum))
        if decay_every is not None:
            check_whole(1, decay_every=decay_every)
        if not decay_by > 0:
            raise MethodError(f"decay_by={decay_by}: lr cannot be divided by it; use a number above 0")
        self.lr, self.decay_every, self.decay_by = lr, decay_every, decay_by

    def before_step(self, batch: Batch) -> None:  # noqa: ARG002
        """Set the learning rate of this iteration: lr / decay_by^floor(iteration / decay_every)."""
        if self.decay_every:
            self.optimizer.param_groups[0]["lr"] = self.lr / self.decay_by ** (self.iteration // self.decay_every)
