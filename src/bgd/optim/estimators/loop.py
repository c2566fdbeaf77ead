"""The paper's estimator: K sampled networks, one after the other."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bgd.optim.estimators.base import Estimator, Expectations, Step


class LoopEstimate:
    """An estimate in the making: networks are sampled one by one, each between ``begin_sample`` and ``end_sample``."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self._eps: list[Tensor] | None = None

    def begin_sample(self) -> None:
        """Set the weights to the next sampled network and clear the gradients."""
        if self._eps is not None:
            raise RuntimeError("begin_sample() twice: call end_sample() after backward(), or discard()")
        step = self.step
        step.statistics.begin_sample()
        self._eps = [e[0] for e in step.noise([step.sharing.sample_index(step.sums.count)])]
        step.write(self._eps)
        for p in step.params:
            p.grad = None

    @torch.no_grad()
    def end_sample(self, loss: Tensor | float | None) -> None:
        """Add the gradients of the sampled network to the sums."""
        if self._eps is None:
            raise RuntimeError(
                "end_sample() without begin_sample(): sample a network, then call backward() on its loss"
            )
        if all(p.grad is None for p in self.step.params):
            raise RuntimeError("no parameter has a gradient: call backward() on the loss before end_sample()")
        self.step.statistics.end_sample()
        self.step.sums.add(self._eps, loss)
        self._eps = None

    def check_complete(self) -> None:
        """Refuse to end an estimate without samples, or in the middle of one."""
        if not self.step.sums.count:
            raise RuntimeError("step() without samples: call step(closure), or begin_sample() and end_sample() first")
        if self._eps is not None:
            raise RuntimeError("step() after begin_sample(): call end_sample() first, or discard()")

    def finish(self) -> Expectations:
        """The expectations, once at least one network has been sampled."""
        self.check_complete()
        return self.step.expectations()


def loop(closure: Callable[[], Tensor | float]) -> Estimator:
    """The estimator that calls ``closure`` once per sampled network; it computes the loss and calls ``backward``."""

    def estimate(step: Step) -> Expectations:
        making = LoopEstimate(step)
        for _ in step.samples:
            making.begin_sample()
            with torch.enable_grad():
                loss = closure()
            if loss is None:
                raise RuntimeError("the closure returned None: it must return the loss")
            making.end_sample(loss)
        return making.finish()

    return estimate
