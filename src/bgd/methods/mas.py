"""Memory aware synapses (Aljundi et al., 2018)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn

from bgd.methods.common.outputs import Outputs
from bgd.methods.common.penalised import Penalised
from bgd.methods.common.penalty import Weights
from bgd.methods.curvature.importance import ImportanceOver, check_over, sensitivity
from bgd.scenarios.types import Batch


class MAS(Penalised):
    """Loss + coefficient x sum_i Omega_i (theta_i - theta*_i)^2, Omega the sensitivity of the outputs.

    Omega <- Omega + mean_b |d mean_o(f_o(x_b)^2) / d theta| at the end of a task; one anchor, the last.

    Args:
        lr: learning rate.
        coefficient: Hsu et al. (``importance_over="batch"``): Split task 1, domain 10000, class 1; Permuted
            task 0.01, domain 0.1, class 0.003. The paper, continuous Permuted with ``consolidate_every=1``:
            0.001, with SGD and lr 0.01.
        optimizer: "sgd", "adam" or "adagrad".
        importance_over: "sample" as Aljundi et al., or "batch" as Hsu et al.: absolute values are taken after
            the mean over a batch.
        consolidate_every: None (at boundaries), or a number of iterations: then no boundaries are needed, see
            :class:`~bgd.methods.common.penalised.Penalised`.
        proximal: take the penalty's step exactly rather than by its gradient; None: only where
            ``consolidate_every`` is set. See there.

    >>> from bgd.scenarios.heads import Heads
    >>> MAS(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),))), consolidate_every=1).needs.name
    'NOTHING'
    """

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        lr: float = 0.001,
        coefficient: float = 1.0,
        optimizer: str = "adam",
        importance_over: ImportanceOver = "sample",
        consolidate_every: int | None = None,
        proximal: bool | None = None,
    ) -> None:
        timing: dict[str, Any] = {"consolidate_every": consolidate_every, "proximal": proximal}
        super().__init__(net, outputs, lr=lr, coefficient=coefficient, optimizer=optimizer, **timing)
        check_over(importance_over)
        self.importance_over = importance_over

    def importance(self, batches: Iterable[Batch]) -> Weights:
        """Omega = the sensitivity of the squared outputs."""
        return sensitivity(self.net, self.outputs, batches, self.importance_over)
