"""Elastic weight consolidation (Kirkpatrick et al., 2017)."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from bgd.methods.common.likelihoods import Label
from bgd.methods.common.outputs import Outputs
from bgd.methods.curvature.fisher_penalised import FisherPenalised, FisherSettings
from bgd.methods.curvature.importance import ImportanceOver
from bgd.scenarios.types import Batch


class EWC(FisherPenalised):
    """Loss + coefficient x sum_ti F_ti (theta_i - theta*_ti)^2: each old task t has its Fisher and its anchor.

    F_t is the mean over the task's samples, so the log posterior of a linear-Gaussian model is matched exactly by
    coefficient = N_old / (2 N_new). The sum over tasks is stored as one quadratic (see
    ``QuadraticPenalty.add_task``).

    Args:
        lr: learning rate.
        coefficient: Hsu et al.: Split task 100, domain 100, class 600; Permuted task 500, domain 150, class 10.
        optimizer: "sgd", "adam" or "adagrad".
        fisher_label: "predicted" (as Hsu et al.), "true", "sampled" or "exact".
        fisher_over: "sample", or "batch" (as Hsu et al. on Permuted domain): gradients are squared after
            their mean over a batch.
        seed: for ``fisher_label="sampled"``.

    >>> from bgd.scenarios.heads import Heads
    >>> EWC(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),)))).needs.name
    'BOUNDARIES'
    """

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        lr: float = 0.001,
        coefficient: float = 100.0,
        optimizer: str = "adam",
        fisher_label: Label = "predicted",
        fisher_over: ImportanceOver = "sample",
        seed: int = 0,
    ) -> None:
        fisher = FisherSettings(fisher_label, fisher_over, seed)
        super().__init__(net, outputs, fisher, lr=lr, coefficient=coefficient, optimizer=optimizer)

    def consolidate(self, batches: Iterable[Batch]) -> None:
        """R <- R + a quadratic around the current weights."""
        self.penalty.add_task(self.importance(batches))
