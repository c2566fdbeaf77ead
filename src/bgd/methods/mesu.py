"""MESU: a posterior that forgets what is older than a window (Bonnet et al., 2025)."""

from __future__ import annotations

from typing import Literal

from torch import nn

from bgd.methods.common.outputs import Outputs
from bgd.methods.common.posterior_optimizer import PosteriorOptimizerLearner
from bgd.optim.mesu import MESU
from bgd.optim.stepping import EstimatorName


class MESULearner(PosteriorOptimizerLearner):
    """BGD to first order, with every weight drawn back to its prior: what is older than N examples fades.

    mean <- mean - lr std^2 E[g] + n / N (std / std_0)^2 (mean_0 - mean) and
    std <- std - std^2 E[g eps] / 2 + n / N std (std_0^2 - std^2) / (2 std_0^2) for n examples: :class:`bgd.optim.MESU`.

    Args:
        memory: N, the window in examples.
        lr: scales the step of the mean.
        std_init: the std of every weight at the start; None for 1 / sqrt(2 fan_in), half of it for convolutions.
        std_shrink: no step makes a std smaller than this fraction of itself.
        std_min: floor of the std.
        std_max: ceiling of the std: a number, "init", or None.
        mc_samples: K, passes, or sampled networks per step.
        estimator: "per_example" for one pass, "shared" for sampled networks.
        nonfinite: "raise" on a NaN or infinite gradient, or "skip" the batch.
        test_samples: networks whose probabilities ``predict`` averages; 0 for the mean network (MAP).
        seed: of the noise.

    >>> import torch
    >>> from bgd.scenarios.heads import Heads
    >>> learner = MESULearner(nn.Linear(4, 2), Outputs(Heads(2, ((0, 1),))))
    >>> learner.observe(torch.zeros(8, 4), torch.ones(8, dtype=torch.int64)) > 0
    True
    """

    optimizer: MESU

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        memory: float = 100_000.0,
        lr: float = 1.0,
        std_init: float | None = None,
        std_shrink: float = 0.1,
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = "init",
        mc_samples: int = 1,
        estimator: EstimatorName = "per_example",
        nonfinite: Literal["raise", "skip"] = "raise",
        test_samples: int = 0,
        seed: int = 0,
    ) -> None:
        posterior = MESU(
            net.parameters(),
            memory=memory,
            lr=lr,
            std_init=std_init,
            std_shrink=std_shrink,
            std_min=std_min,
            std_max=std_max,
            mc_samples=mc_samples,
            estimator=estimator,
            nonfinite=nonfinite,
            seed=seed,
        )
        super().__init__(net, outputs, posterior, test_samples)
