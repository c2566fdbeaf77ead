"""The paper's estimator: K sampled networks, one after the other."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bgd.optim.estimators.base import Estimator, Expectations, Step


def loop(closure: Callable[[], Tensor | float]) -> Estimator:
    """The estimator that calls ``closure`` once per sampled network.

    With theta_k = mean + std * eps_k and g_k the gradient that the closure leaves in the parameters,
    E[g] = mean_k g_k and E[g eps] = mean_k g_k eps_k.

    Args:
        closure: computes the loss, calls ``backward()`` and returns the loss.
    """

    def estimate(step: Step) -> Expectations:
        for sample in step.samples:
            step.statistics.begin_sample()
            eps = [e[0] for e in step.noise([sample])]
            step.write(eps)
            for p in step.params:
                p.grad = None
            with torch.enable_grad():
                loss = closure()
            if loss is None:
                raise RuntimeError("the closure returned None: it must return the loss")
            if all(p.grad is None for p in step.params):
                raise RuntimeError("no parameter has a gradient: call backward() on the loss in the closure")
            step.statistics.end_sample()
            with torch.no_grad():
                step.sums.add(eps, loss)
        return step.expectations()

    return estimate
