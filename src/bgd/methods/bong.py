"""BONG: one natural-gradient step per batch, diagonal (Jones, Chang and Murphy, 2024)."""

from __future__ import annotations

from typing import Literal

from torch import nn

from bgd.methods.common.outputs import Outputs
from bgd.methods.common.posterior_optimizer import PosteriorOptimizerLearner
from bgd.optim.bong import BONG, Curvature
from bgd.optim.stepping import EstimatorName


class BONGLearner(PosteriorOptimizerLearner):
    """1 / std^2 <- 1 / std^2 + E[h], then mean <- mean - lr std^2 E[g]: Bayes' rule, where the loss is quadratic.

    Before the next batch mean <- gamma mean, std^2 <- gamma^2 std^2 + Q. All of it is :class:`bgd.optim.BONG`.

    Args:
        curvature: "hessian", E[g eps] / std; or "fisher", E[g]^2 / n, which is never negative.
        lr: scales the step of the mean.
        std_init: the std of every weight at the start; None for 1 / sqrt(2 fan_in), half of it for convolutions.
        decay: gamma.
        process_noise: Q.
        std_min: floor of the std.
        std_max: ceiling of the std: a number, "init", or None.
        mc_samples: K, passes, or sampled networks per step.
        estimator: "per_example" for one pass, "shared" for sampled networks.
        nonfinite: "raise" on a NaN or infinite gradient, or "skip" the batch.
        test_samples: networks whose probabilities ``predict`` averages; 0 for the mean network (MAP).
        seed: of the noise.

    >>> import torch
    >>> from bgd.scenarios.heads import Heads
    >>> learner = BONGLearner(nn.Linear(4, 2), Outputs(Heads(2, ((0, 1),))))
    >>> learner.observe(torch.zeros(8, 4), torch.ones(8, dtype=torch.int64)) > 0
    True
    """

    optimizer: BONG

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        curvature: Curvature = "hessian",
        lr: float = 1.0,
        std_init: float | None = None,
        decay: float = 1.0,
        process_noise: float = 0.0,
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = "init",
        mc_samples: int = 1,
        estimator: EstimatorName = "per_example",
        nonfinite: Literal["raise", "skip"] = "raise",
        test_samples: int = 0,
        seed: int = 0,
    ) -> None:
        posterior = BONG(
            net.parameters(),
            curvature=curvature,
            lr=lr,
            std_init=std_init,
            decay=decay,
            process_noise=process_noise,
            std_min=std_min,
            std_max=std_max,
            mc_samples=mc_samples,
            estimator=estimator,
            nonfinite=nonfinite,
            seed=seed,
        )
        super().__init__(net, outputs, posterior, test_samples)
