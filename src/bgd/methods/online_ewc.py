"""Online EWC (Schwarz et al., 2018)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from torch import nn

from bgd.methods.common.base import generator_for
from bgd.methods.common.likelihoods import Label, check_label
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.penalised import Penalised
from bgd.methods.common.penalty import Weights
from bgd.methods.common.types import MethodError
from bgd.methods.curvature.importance import ImportanceOver, check_over, fisher
from bgd.scenarios.types import Batch


class OnlineEWC(Penalised):
    """Loss + coefficient x sum_i F_i (theta_i - theta*_i)^2, F <- decay F + F_t: one Fisher, one anchor.

    Args:
        net: any module that maps (B, ...) to scores (B, outputs).
        outputs: which outputs the loss runs over.
        lr: learning rate.
        coefficient: Hsu et al.: Split task 400, domain 700, class 100; Permuted task 500, domain 250, class
            50. The paper, continuous Permuted with ``consolidate_every=1``: 0.1, with SGD and lr 0.01.
        optimizer: "sgd", "adam" or "adagrad".
        decay: how much of the old Fisher a consolidation keeps; 1, as Hsu et al., keeps all.
        fisher_label: "predicted" (as Hsu et al.), "true", "sampled" or "exact".
        fisher_over: "sample", or "batch": gradients are squared after their mean over a batch.
        consolidate_every: None (at boundaries), or a number of iterations: then nothing needs to be known,
            and :class:`~bgd.methods.common.penalised.Penalised` says what happens.
        proximal: take the penalty's step exactly rather than by its gradient; None: only where
            ``consolidate_every`` is set. See there.
        seed: for ``fisher_label="sampled"``.

    >>> from bgd.scenarios.heads import Heads
    >>> OnlineEWC(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),))), consolidate_every=1).needs.name
    'NOTHING'
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
        decay: float = 1.0,
        fisher_label: Label = "predicted",
        fisher_over: ImportanceOver = "sample",
        consolidate_every: int | None = None,
        proximal: bool | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(
            net,
            outputs,
            optimizer=optimizer,
            lr=lr,
            coefficient=coefficient,
            consolidate_every=consolidate_every,
            proximal=proximal,
        )
        check_label(fisher_label, outputs.likelihood)
        check_over(fisher_over, fisher_label)
        if not 0 <= decay <= 1:
            raise MethodError(f"decay={decay}: the part of the old Fisher that is kept, from 0 to 1")
        self.decay, self.fisher_label, self.fisher_over = decay, fisher_label, fisher_over
        self.generator = generator_for(net, seed)

    def importance(self, batches: Iterable[Batch]) -> Weights:
        """Omega = F, diagonal Fisher information."""
        return fisher(self.net, self.outputs, batches, self.fisher_label, self.fisher_over, self.generator)

    def consolidate(self, batches: Iterable[Batch]) -> None:
        """F <- decay F + F_t; the anchor moves to the weights of this moment."""
        self.penalty.accumulate(self.importance(batches), self.decay)
