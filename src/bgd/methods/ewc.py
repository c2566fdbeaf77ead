"""Elastic weight consolidation (Kirkpatrick et al., 2017)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from torch import nn

from bgd.methods.common.base import generator_for
from bgd.methods.common.likelihoods import Label, check_label
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.penalised import Penalised
from bgd.methods.common.penalty import Weights
from bgd.methods.curvature.importance import ImportanceOver, check_over, fisher
from bgd.scenarios.types import Batch


class EWC(Penalised):
    """Loss + coefficient x sum_ti F_ti (theta_i - theta*_ti)^2: each old task t has its Fisher and its anchor.

    F_t is the mean over the task's samples, so the log posterior of a linear-Gaussian model is met exactly by
    coefficient = N_old / (2 N_new). The sum over tasks is kept as one quadratic (see
    ``QuadraticPenalty.add_task``).

    Args:
        net: any module that maps (B, ...) to scores (B, outputs).
        outputs: which outputs the loss runs over.
        lr: learning rate.
        coefficient: Hsu et al.: Split task 100, domain 100, class 600; Permuted task 500, domain 150, class
            10.
        optimizer: "sgd", "adam" or "adagrad".
        fisher_label: "predicted" (as Hsu et al.), "true", "sampled" or "exact".
        fisher_over: "sample", or "batch" (as Hsu et al. on Permuted domain): gradients are squared after
            their mean over a batch.
        seed: for ``fisher_label="sampled"``.

    >>> from bgd.scenarios.heads import Heads
    >>> EWC(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),)))).needs.name
    'BOUNDARIES'
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("penalty", "generator")

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
        super().__init__(net, outputs, optimizer=optimizer, lr=lr, coefficient=coefficient)
        check_label(fisher_label, outputs.likelihood)
        check_over(fisher_over, fisher_label)
        self.fisher_label, self.fisher_over = fisher_label, fisher_over
        self.generator = generator_for(net, seed)

    def importance(self, batches: Iterable[Batch]) -> Weights:
        """Omega = F, diagonal Fisher information."""
        return fisher(self.net, self.outputs, batches, self.fisher_label, self.fisher_over, self.generator)

    def consolidate(self, batches: Iterable[Batch]) -> None:
        """One more quadratic, around the weights of this moment."""
        self.penalty.add_task(self.importance(batches))
