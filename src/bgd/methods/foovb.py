"""FOO-VB, matrix-variate (Zeno et al., 2021)."""

from __future__ import annotations

from typing import Literal

from torch import nn

from bgd.methods.common.outputs import Outputs
from bgd.methods.common.posterior_optimizer import PosteriorOptimizerLearner
from bgd.optim.foovb import FOOVB, Root


class FOOVBLearner(PosteriorOptimizerLearner):
    """A posterior M + B Phi A^T for each weight matrix, in which weights of a row and of a column covary.

    M <- M - lr B B^T E[Psi] A A^T, and A, B solve X X^T + V E X^T = V: :class:`bgd.optim.FOOVB`. Other parameters have
    BGD's posterior. A step decomposes matrices of the layers' sizes: meant for small networks.

    Args:
        std_init: the std of every weight at the start; None for 1 / sqrt(2 fan_in).
        lr: scales the step of the mean.
        mc_samples: K, sampled networks per step; 2,500 in the paper.
        root: "nearest", which shrinks and grows, or "contracting", as the paper's solver.
        antithetic: sample networks in pairs (+eps, -eps).
        nonfinite: "raise" on a NaN or infinite gradient, or "skip" the batch.
        test_samples: networks whose probabilities ``predict`` averages; 0 for the mean network (MAP).
        seed: of the noise.

    >>> import torch
    >>> from bgd.scenarios.heads import Heads
    >>> learner = FOOVBLearner(nn.Linear(4, 2), Outputs(Heads(2, ((0, 1),))), mc_samples=2)
    >>> learner.observe(torch.zeros(8, 4), torch.ones(8, dtype=torch.int64)) > 0
    True
    """

    optimizer: FOOVB

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        std_init: float | None = None,
        lr: float = 1.0,
        mc_samples: int = 10,
        root: Root = "nearest",
        antithetic: bool = False,
        nonfinite: Literal["raise", "skip"] = "raise",
        test_samples: int = 0,
        seed: int = 0,
    ) -> None:
        posterior = FOOVB(
            net.parameters(),
            std_init=std_init,
            lr=lr,
            mc_samples=mc_samples,
            root=root,
            antithetic=antithetic,
            nonfinite=nonfinite,
            seed=seed,
        )
        super().__init__(net, outputs, posterior, test_samples, batched=False)
