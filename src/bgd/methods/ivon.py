"""IVON: variational online Newton (Shen et al., 2024)."""

from __future__ import annotations

from typing import Literal

from torch import nn

from bgd.methods.common.outputs import Outputs
from bgd.methods.common.posterior_optimizer import PosteriorOptimizerLearner
from bgd.optim.ivon import IVON
from bgd.optim.stepping import EstimatorName


class IVONLearner(PosteriorOptimizerLearner):
    """A moving average h of the Hessian gives the variance 1 / (lambda (h + delta)) and scales the step of the mean.

    m <- beta1 m + (1 - beta1) E[g] / n, f = E[g eps] / (n std),
    h <- beta2 h + (1 - beta2) f + (1 - beta2)^2 (h - f)^2 / (2 (h + delta)), and
    mean <- mean - lr (m / (1 - beta1^t) + delta mean) / (h + delta): :class:`bgd.optim.IVON`.

    Args:
        lr: step size.
        ess: lambda, the number of examples that the posterior is to stand for.
        std_init: the std of every weight at the start.
        beta1: decay of the momentum.
        beta2: decay of h.
        weight_decay: delta.
        std_min: floor of the std.
        std_max: ceiling of the std: a number, "init", or None.
        mc_samples: K, passes, or sampled networks per step.
        estimator: "per_example" for one pass, "shared" for sampled networks.
        nonfinite: "raise" on a NaN or infinite gradient, or "skip" the batch.
        test_samples: networks whose probabilities ``predict`` averages; 0 for the mean network (MAP).
        seed: of the noise.

    >>> import torch
    >>> from bgd.scenarios.heads import Heads
    >>> learner = IVONLearner(nn.Linear(4, 2), Outputs(Heads(2, ((0, 1),))))
    >>> learner.observe(torch.zeros(8, 4), torch.ones(8, dtype=torch.int64)) > 0
    True
    """

    optimizer: IVON

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        lr: float = 0.1,
        ess: float = 10_000.0,
        std_init: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.9999,
        weight_decay: float = 1e-4,
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = None,
        mc_samples: int = 1,
        estimator: EstimatorName = "per_example",
        nonfinite: Literal["raise", "skip"] = "raise",
        test_samples: int = 0,
        seed: int = 0,
    ) -> None:
        posterior = IVON(
            net.parameters(),
            lr=lr,
            ess=ess,
            std_init=std_init,
            beta1=beta1,
            beta2=beta2,
            weight_decay=weight_decay,
            std_min=std_min,
            std_max=std_max,
            mc_samples=mc_samples,
            estimator=estimator,
            nonfinite=nonfinite,
            seed=seed,
        )
        super().__init__(net, outputs, posterior, test_samples)
