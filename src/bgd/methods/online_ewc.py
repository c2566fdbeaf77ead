"""Online EWC (Schwarz et al., 2018)."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from bgd.methods.common.likelihoods import Label
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.types import MethodError
from bgd.methods.curvature.fisher_penalised import FisherPenalised, FisherSettings
from bgd.methods.curvature.importance import ImportanceOver
from bgd.scenarios.types import Batch


class OnlineEWC(FisherPenalised):
    """Loss + coefficient x sum_i F_i (theta_i - theta*_i)^2, F <- decay F + F_t: one Fisher, one anchor.

    Args:
        lr: learning rate.
        coefficient: Hsu et al.: Split task 400, domain 700, class 100; Permuted task 500, domain 250, class
            50. The paper, continuous Permuted with ``consolidate_every=1``: 0.1, with SGD and lr 0.01.
        optimizer: "sgd", "adam" or "adagrad".
        decay: the share of the old Fisher that a consolidation keeps; 1, as Hsu et al., keeps all.
        fisher_label: "predicted" (as Hsu et al.), "true", "sampled" or "exact".
        fisher_over: "sample", or "batch": gradients are squared after their mean over a batch.
        consolidate_every: None (at boundaries), or a number of iterations: then no boundaries are needed, see
            :class:`~bgd.methods.common.penalised.Penalised`.
        proximal: take the penalty's step exactly rather than by its gradient; None: only where
            ``consolidate_every`` is set. See there.
        seed: for ``fisher_label="sampled"``.

    >>> from bgd.scenarios.heads import Heads
    >>> OnlineEWC(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),))), consolidate_every=1).needs.name
    'NOTHING'
    """

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        lr: float = 0.001,
        coefficient: float = 100.0,
        optimizer: str = "adam",
        decay: float = 1.0,
        fisher_label: Label = "predicted",
        fisher_over: ImportanceOver = "sample",
        consolidate_every: int | None = None,
        proximal: bool | None = None,
        seed: int = 0,
    ) -> None:
        fisher = FisherSettings(fisher_label, fisher_over, seed)
        timing = {"consolidate_every": consolidate_every, "proximal": proximal}
        super().__init__(net, outputs, fisher, lr=lr, coefficient=coefficient, optimizer=optimizer, **timing)
        if not 0 <= decay <= 1:
            raise MethodError(f"decay={decay}: must lie in [0, 1], the share of the old Fisher that is kept")
        self.decay = decay

    def consolidate(self, batches: Iterable[Batch]) -> None:
        """F <- decay F + F_t; the anchor moves to the current weights."""
        self.penalty.accumulate(self.importance(batches), self.decay)
