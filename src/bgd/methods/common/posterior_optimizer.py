"""Learners whose whole method is a posterior's optimizer: BGD and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn
from torch.func import functional_call

from bgd.inference import sampled_networks
from bgd.methods.common.outputs import Outputs, check_outputs, masked
from bgd.methods.common.penalty import Weights
from bgd.methods.common.posterior import PosteriorLearner
from bgd.optim.stepping import EstimatorOptimizer
from bgd.validation import check_whole


class PosteriorOptimizerLearner(PosteriorLearner):
    """One step of the optimizer for each batch, by the estimator that it names.

    Args:
        net: any module that maps (B, ...) to scores (B, outputs).
        outputs: which outputs the loss runs over.
        optimizer: over the parameters of ``net``; its ``reduction`` says which loss it is given.
        test_samples: networks whose probabilities ``predict`` averages; 0 for the mean network (MAP).
        batched: evaluate all sampled networks in one pass, or (False) one after the other; same numbers.
        chunk_size: networks in memory at a time; None for all.
        compile: compile the batched step. None: if a compiler is installed.
    """

    optimizer: EstimatorOptimizer

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        optimizer: EstimatorOptimizer,
        test_samples: int = 0,
        *,
        batched: bool = True,
        chunk_size: int | None = None,
        compile: bool | None = False,
    ) -> None:
        check_whole(0, test_samples=test_samples)
        super().__init__(net, outputs, optimizer)
        self.test_samples = test_samples
        self._step: Callable[..., Tensor] = self._loop
        if batched and optimizer.samples_networks:
            self._step = optimizer.batched(net, self._objective, chunk_size=chunk_size, compile=compile)

    def observe(self, x: Tensor, y: Tensor, task: int | Tensor | None = None) -> float:
        """One update; returns the mean loss of the batch, over the passes or sampled networks of the step."""
        self.outputs.add_labels(y)
        if not self.net.training:
            self.net.train()
        mean = self.optimizer.reduction == "mean"
        mask = self.outputs.mask(y, task)  # one for all of them
        total = self._step(x, y, mask, batch_size=len(x) if mean else None)
        self.iteration += 1
        return total.item() / (1 if mean else len(x))

    def _objective(self, net: Callable[..., Any], x: Tensor, y: Tensor, mask: Tensor | None) -> Tensor:
        scores: Tensor = net(x)
        check_outputs(self.net, scores, self.outputs.heads)
        loss = self.outputs.likelihood.loss(masked(scores, mask), y).sum()
        return loss / len(x) if self.optimizer.reduction == "mean" else loss

    def _loop(self, x: Tensor, y: Tensor, mask: Tensor | None, *, batch_size: int | None) -> Tensor:
        def closure() -> Tensor:
            self.optimizer.zero_grad()
            loss = self._objective(self.net, x, y, mask)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        return self.optimizer.step(closure, batch_size=batch_size)

    def sample_scores(self, x: Tensor, samples: int) -> Iterator[Tensor]:
        """From the current posterior; the optimizer's own count of samples is restored, so every call is the same."""
        drawn = self.optimizer.samples_drawn
        networks = sampled_networks(self.net, self.optimizer, samples)
        self.optimizer.samples_drawn = drawn
        for weights in networks:
            yield functional_call(self.net, weights, (x,))

    def check_posterior(self) -> None:
        """Warn if stds have exploded or vanished since the optimizer's own last check."""
        self.optimizer.check_posterior()

    def std(self) -> Weights:
        """The std of each weight."""
        state = self.optimizer.state
        return {name: state[p]["std"].detach() for name, p in self.net.named_parameters() if p in state}
