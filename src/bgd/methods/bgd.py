"""Bayesian Gradient Descent, the paper's own method."""

from __future__ import annotations

from typing import ClassVar, Literal

from torch import nn

from bgd.methods.common.outputs import Outputs
from bgd.methods.common.posterior_optimizer import PosteriorOptimizerLearner
from bgd.optim.bgd import BGD
from bgd.optim.noise import NoiseKind
from bgd.optim.stepping import EstimatorName


class BGDLearner(PosteriorOptimizerLearner):
    """mean <- mean - lr std^2 E[g], std <- std exp(-asinh(std E[g eps] / 2)): needs no boundaries, no task ids.

    All of it is :class:`bgd.optim.BGD`; g is the gradient of the *summed* loss of the batch. By default one pass with
    noise of its own for each example, and stds that need no setting.

    Args:
        std_init: the std of every weight at the start: 0.017 to 0.06 in the paper's MNIST experiments. None for
            1 / sqrt(2 fan_in), half of it for convolutions.
        estimator: "per_example" for one pass, "shared" for sampled networks, as in the paper.
        mc_samples: K, sampled networks per step, or passes; 10 in the paper.
        lr: the paper's eta.
        std_min: floor of the std.
        std_max: ceiling of the std: a number, "init", or None as in the paper.
        max_move: by how many of its stds a mean may move in a step; None as in the paper.
        boost: a small batch takes about the step of one of so many examples; None as in the paper.
        memory: a window of so many examples, after which what was learned has faded; None as in the paper.
        antithetic: sample networks in pairs (+eps, -eps).
        noise: see :mod:`bgd.optim.noise`; None for the estimator's own.
        implicit_iterations: how often to iterate the implicit equations; 1 is the paper's algorithm.
        batched: evaluate all sampled networks in one pass, or (False) one after the other; same numbers.
        chunk_size: networks in memory at a time; None for all.
        compile: compile the batched step: a slow first step, faster ones after it. None: if a compiler is installed.
        nonfinite: "raise" on a NaN or infinite gradient, or "skip" the batch: a run whose posterior has diverged
            then continues to the end, at chance.
        test_samples: networks whose probabilities ``predict`` averages; 0 for the mean network (MAP).
        seed: of the noise.

    >>> import torch
    >>> from bgd.scenarios.heads import Heads
    >>> learner = BGDLearner(nn.Linear(4, 2), Outputs(Heads(2, ((0, 1),))), std_init=0.05)
    >>> learner.observe(torch.zeros(8, 4), torch.ones(8, dtype=torch.int64)) > 0
    True
    """

    optimizer: BGD
    computation_settings: ClassVar[tuple[str, ...]] = ("noise", "batched", "chunk_size", "compile")

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        std_init: float | None = None,
        estimator: EstimatorName = "per_example",
        mc_samples: int = 1,
        lr: float = 1.0,
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = "init",
        max_move: float | None = 0.5,
        boost: float | None = 256.0,
        memory: float | None = None,
        antithetic: bool = False,
        noise: NoiseKind | None = None,
        implicit_iterations: int = 1,
        batched: bool = True,
        chunk_size: int | None = None,
        compile: bool | None = False,
        nonfinite: Literal["raise", "skip"] = "raise",
        test_samples: int = 0,
        seed: int = 0,
    ) -> None:
        posterior = BGD(
            net.parameters(),
            std_init=std_init,
            estimator=estimator,
            mc_samples=mc_samples,
            lr=lr,
            std_min=std_min,
            std_max=std_max,
            max_move=max_move,
            boost=boost,
            memory=memory,
            reduction="mean" if memory and estimator == "shared" else "sum",
            antithetic=antithetic,
            noise=noise,
            implicit_iterations=implicit_iterations,
            nonfinite=nonfinite,
            seed=seed,
        )
        super().__init__(net, outputs, posterior, test_samples, batched=batched, chunk_size=chunk_size, compile=compile)
