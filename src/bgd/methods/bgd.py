"""Bayesian Gradient Descent, the paper's own method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

from bgd.inference import evaluating
from bgd.methods.common.base import Base
from bgd.methods.common.outputs import Outputs, check_outputs, masked
from bgd.optim.bgd import BGD
from bgd.optim.noise import NoiseKind
from bgd.validation import check_whole


class BGDLearner(Base):
    """mean <- mean - lr std^2 E[g], std <- std exp(-asinh(std E[g eps] / 2)): needs no boundaries, no task ids.

    All of it is :class:`bgd.optim.BGD`; g is the gradient of the *summed* loss of the batch.

    Args:
        net: any module that maps (B, ...) to scores (B, outputs).
        outputs: which outputs the loss runs over.
        std_init: the std of every weight at the start: 0.017 to 0.06 in the paper's MNIST experiments.
        mc_samples: K, sampled networks per step; the paper takes 10.
        lr: the paper's eta.
        std_min: floor of the std.
        std_max: ceiling of the std: a number, "init", or None as in the paper.
        antithetic: draw networks in pairs (+eps, -eps).
        noise: "torch" or "hash", see :mod:`bgd.optim.noise`.
        implicit_iterations: how often to iterate the implicit equations; 1 is the paper's algorithm.
        batched: evaluate all K networks in one pass, or (False) one after the other; same numbers.
        chunk_size: networks in memory at a time; None for all.
        compile: compile the batched step: a slow first step, faster ones after it. None: where a compiler is.
        nonfinite: "raise" on a NaN or infinite gradient, or "skip" the batch: a posterior that has blown up then
            goes on to the end, at chance.
        test_samples: draws that ``predict`` averages the probabilities of; 0 for the mean network (MAP).
        seed: of the noise.

    >>> from bgd.scenarios.heads import Heads
    >>> learner = BGDLearner(nn.Linear(4, 2), Outputs(Heads(2, ((0, 1),))), std_init=0.05)
    >>> learner.observe(torch.zeros(8, 4), torch.ones(8, dtype=torch.int64)) > 0
    True
    """

    optimizer: BGD

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        std_init: float = 0.02,
        mc_samples: int = 2,
        lr: float = 1.0,
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = "init",
        antithetic: bool = False,
        noise: NoiseKind = "torch",
        implicit_iterations: int = 1,
        batched: bool = True,
        chunk_size: int | None = None,
        compile: bool | None = False,
        nonfinite: Literal["raise", "skip"] = "raise",
        test_samples: int = 0,
        seed: int = 0,
    ) -> None:
        check_whole(0, test_samples=test_samples)
        posterior = BGD(
            net.parameters(),
            std_init,
            mc_samples,
            lr,
            std_min=std_min,
            std_max=std_max,
            antithetic=antithetic,
            noise=noise,
            implicit_iterations=implicit_iterations,
            nonfinite=nonfinite,
            seed=seed,
        )
        super().__init__(net, outputs, posterior)
        self.test_samples = test_samples
        self._step: Callable[..., Tensor] = self._loop
        if batched:
            self._step = posterior.batched(net, self._objective, chunk_size=chunk_size, compile=compile)

    def observe(self, x: Tensor, y: Tensor, task: int | Tensor | None = None) -> float:
        """One update from K sampled networks; returns the mean over them of the batch's mean loss."""
        self.outputs.note(y)
        if not self.net.training:
            self.net.train()
        total = self._step(x, y, self.outputs.mask(y, task))  # the mask once, not K times
        self.iteration += 1
        return total.item() / len(x)

    def _objective(self, net: Callable[..., Any], x: Tensor, y: Tensor, mask: Tensor | None) -> Tensor:
        scores: Tensor = net(x)
        check_outputs(self.net, scores, self.outputs.heads)
        return self.outputs.likelihood.loss(masked(scores, mask), y).sum()

    def _loop(self, x: Tensor, y: Tensor, mask: Tensor | None) -> Tensor:
        def closure() -> Tensor:
            self.optimizer.zero_grad()
            loss = self._objective(self.net, x, y, mask)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        return self.optimizer.step(closure)

    @torch.no_grad()
    def predict_samples(self, x: Tensor, samples: int, task: int | Tensor | None = None) -> Tensor:
        """The scores of ``samples`` draws, (samples, B, outputs): the same draws at every call."""
        names: dict[Tensor, str] = {p: name for name, p in self.net.named_parameters()}
        draws = self.optimizer.samples_drawn
        weights = self.optimizer.sample_weights(samples)
        self.optimizer.samples_drawn = draws
        with evaluating(self.net):
            scores = [
                functional_call(self.net, {names[p]: w[k] for p, w in weights.items()}, (x,)) for k in range(samples)
            ]
        return torch.stack([self.outputs.restrict(s, task) for s in scores])

    @torch.no_grad()
    def predict(self, x: Tensor, task: int | Tensor | None = None) -> Tensor:
        """The scores of the mean network, or what ``test_samples`` draws say together (:meth:`Outputs.average`)."""
        if not self.test_samples:
            return super().predict(x, task)
        return self.outputs.average(self.predict_samples(x, self.test_samples, task))
