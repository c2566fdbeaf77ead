"""UPGD: utility-based perturbed gradient descent (Elsayed and Mahmood, 2024)."""

from __future__ import annotations

from torch import nn

from bgd.methods.common.base import Base, trainable_parameters
from bgd.methods.common.outputs import Outputs
from bgd.optim.noise import fold
from bgd.optim.upgd import UPGD

_NOISE = 3  # separates its noise from other uses of a run's seed


class UPGDLearner(Base):
    """w <- (1 - lr lambda) w - 2 lr (g + noise) (1 - sigmoid(U / max U)): spares weights of use, renews the others.

    U is a moving average of -g w. All of it is :class:`bgd.optim.UPGD`; g is the gradient of the batch's mean loss.

    Args:
        lr: step size.
        noise_std: of the noise on the gradient.
        utility_decay: of the moving average.
        weight_decay: lambda.
        seed: of the noise.

    >>> from bgd.scenarios.heads import Heads
    >>> UPGDLearner(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),)))).needs.name
    'NOTHING'
    """

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        lr: float = 0.01,
        noise_std: float = 0.001,
        utility_decay: float = 0.999,
        weight_decay: float = 0.0,
        seed: int = 0,
    ) -> None:
        optimizer = UPGD(
            trainable_parameters(net).values(),
            lr=lr,
            noise_std=noise_std,
            utility_decay=utility_decay,
            weight_decay=weight_decay,
            seed=fold(seed, _NOISE),
        )
        super().__init__(net, outputs, optimizer)
