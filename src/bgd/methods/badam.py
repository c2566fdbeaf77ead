"""BAdam: BGD's stds with Adam's step of the means (Foster and Brintrup, 2023)."""

from __future__ import annotations

from typing import Literal

from torch import nn

from bgd.methods.common.outputs import Outputs
from bgd.methods.common.posterior_optimizer import PosteriorOptimizerLearner
from bgd.optim.badam import BAdam
from bgd.optim.stepping import EstimatorName


class BAdamLearner(PosteriorOptimizerLearner):
    """mean <- mean - lr std^2 m / (sqrt(v) + c), std <- std exp(-asinh(std E[g eps] / 2)).

    m and v are Adam's moving averages of E[g] and of its square: :class:`bgd.optim.BAdam`.

    Args:
        lr: scales the step of the mean.
        std_init: the std of every weight at the start; None for 1 / sqrt(2 fan_in), half of it for convolutions.
        beta1: decay of m.
        beta2: decay of v.
        damping: c.
        std_min: floor of the std.
        std_max: ceiling of the std: a number, "init", or None.
        mc_samples: K, passes, or sampled networks per step.
        estimator: "per_example" for one pass, "shared" for sampled networks.
        nonfinite: "raise" on a NaN or infinite gradient, or "skip" the batch.
        test_samples: networks whose probabilities ``predict`` averages; 0 for the mean network (MAP).
        seed: of the noise.

    >>> import torch
    >>> from bgd.scenarios.heads import Heads
    >>> learner = BAdamLearner(nn.Linear(4, 2), Outputs(Heads(2, ((0, 1),))))
    >>> learner.observe(torch.zeros(8, 4), torch.ones(8, dtype=torch.int64)) > 0
    True
    """

    optimizer: BAdam

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        lr: float = 1.0,
        std_init: float | None = None,
        beta1: float = 0.9,
        beta2: float = 0.999,
        damping: float = 1e-8,
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = "init",
        mc_samples: int = 1,
        estimator: EstimatorName = "per_example",
        nonfinite: Literal["raise", "skip"] = "raise",
        test_samples: int = 0,
        seed: int = 0,
    ) -> None:
        posterior = BAdam(
            net.parameters(),
            lr=lr,
            std_init=std_init,
            beta1=beta1,
            beta2=beta2,
            damping=damping,
            std_min=std_min,
            std_max=std_max,
            mc_samples=mc_samples,
            estimator=estimator,
            nonfinite=nonfinite,
            seed=seed,
        )
        super().__init__(net, outputs, posterior, test_samples)
