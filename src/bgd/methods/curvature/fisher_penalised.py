"""Penalties whose importance is diagonal Fisher information: what EWC and Online EWC share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from torch import nn

from bgd.methods.common.base import generator_for
from bgd.methods.common.likelihoods import Label, check_label
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.penalised import Penalised
from bgd.methods.common.penalty import Weights
from bgd.methods.curvature.importance import ImportanceOver, check_over, fisher
from bgd.scenarios.types import Batch


class FisherSettings(NamedTuple):
    """How Fisher information is measured.

    Attributes:
        label: "predicted" (as Hsu et al.), "true", "sampled" or "exact".
        over: "sample", or "batch": gradients are squared after their mean over a batch.
        seed: for the label "sampled".
    """

    label: Label
    over: ImportanceOver
    seed: int


class FisherPenalised(Penalised):
    """Loss + coefficient x sum_i F_i (theta_i - theta*_i)^2, F the diagonal Fisher information of old tasks.

    Args:
        fisher: how it is measured.
        **settings: of :class:`~bgd.methods.common.penalised.Penalised`.
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("penalty", "generator")

    def __init__(self, net: nn.Module, outputs: Outputs, fisher: FisherSettings, **settings: Any) -> None:
        super().__init__(net, outputs, **settings)
        check_label(fisher.label, outputs.likelihood)
        check_over(fisher.over, fisher.label)
        self.fisher = fisher
        self.generator = generator_for(net, fisher.seed)

    def importance(self, batches: Iterable[Batch]) -> Weights:
        """Omega = F, diagonal Fisher information."""
        return fisher(self.net, self.outputs, batches, self.fisher.label, self.fisher.over, self.generator)
