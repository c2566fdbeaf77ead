"""Continual backprop: gradient descent that renews the hidden units of least use (Dohare et al., 2024)."""

from __future__ import annotations

from torch import nn

from bgd.methods.common.base import Base
from bgd.methods.common.outputs import Outputs
from bgd.optim.continual_backprop import ContinualBackprop
from bgd.optim.noise import fold

_UNITS = 4  # separates its draws from other uses of a run's seed


class ContinualBackpropLearner(Base):
    """SGD; and each step a share of the mature hidden units, those of least mean |h| sum_k |w_k|, begins anew.

    All of it is :class:`bgd.optim.ContinualBackprop`; the network needs linear layers that follow each other.

    Args:
        lr: step size.
        replacement_rate: the fraction of the mature units that a step replaces: 1e-4 to 1e-6 in the paper.
        utility_decay: of the moving averages.
        maturity: how many steps a new unit is safe.
        weight_decay: lambda: w <- w - lr (g + lambda w).
        seed: of the new weights.

    >>> from bgd.scenarios.heads import Heads
    >>> net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
    >>> ContinualBackpropLearner(net, Outputs(Heads(2, ((0, 1),)))).needs.name
    'NOTHING'
    """

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        lr: float = 0.01,
        replacement_rate: float = 1e-4,
        utility_decay: float = 0.99,
        maturity: int = 100,
        weight_decay: float = 0.0,
        seed: int = 0,
    ) -> None:
        optimizer = ContinualBackprop(
            net,
            lr=lr,
            replacement_rate=replacement_rate,
            utility_decay=utility_decay,
            maturity=maturity,
            weight_decay=weight_decay,
            seed=fold(seed, _UNITS),
        )
        super().__init__(net, outputs, optimizer)
