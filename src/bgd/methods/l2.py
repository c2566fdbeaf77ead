"""L2: every weight is kept near its value at the end of the last task."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from bgd.methods.common.outputs import Outputs
from bgd.methods.common.penalised import Penalised, ones_like
from bgd.methods.common.penalty import Weights
from bgd.scenarios.types import Batch


class L2(Penalised):
    """Loss + coefficient x sum_i (theta_i - theta*_i)^2, theta* the weights at the end of the last task.

    Args:
        lr: learning rate.
        coefficient: Hsu et al.: Split task 0.01, domain 0.5, class 100; Permuted task 0.001, domain 0.02, class 0.
        optimizer: "sgd", "adam" or "adagrad".

    >>> from bgd.scenarios.heads import Heads
    >>> L2(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),)))).needs.name
    'BOUNDARIES'
    """

    def __init__(
        self, net: nn.Module, outputs: Outputs, *, lr: float = 0.001, coefficient: float = 0.5, optimizer: str = "adam"
    ) -> None:
        super().__init__(net, outputs, lr=lr, coefficient=coefficient, optimizer=optimizer)

    def importance(self, batches: Iterable[Batch]) -> Weights:  # noqa: ARG002
        """Omega = 1."""
        return ones_like(self.penalty.parameters)

    def consolidate(self, batches: Iterable[Batch]) -> None:
        """Omega stays 1, whatever the number of tasks; the anchor moves."""
        self.penalty.accumulate(self.importance(batches), decay=0.0)
