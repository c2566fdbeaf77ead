"""What relatives of BGD share: each is a rule from a posterior and its expectations to the next posterior.

A relative defines :meth:`Relative.next_posterior` for one parameter, out of place. All else is the base: estimators,
groups, samples, noise, state dict; and a step that leads to a NaN or infinite mean is refused whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from bgd.optim.estimators.base import Expectations, Step
from bgd.optim.overflow import overflown
from bgd.optim.posterior import std_max_of
from bgd.optim.stepping import EstimatorOptimizer
from bgd.optim.update import Gaussian, std_bounds

State = dict[str, Any]
Group = dict[str, Any]


class Relative(EstimatorOptimizer):
    """A posterior whose update is a pure function of one parameter's posterior, expectations and state.

    Its groups have ``lr``, ``std_init``, ``std_min``, ``std_max``, and what ``rules`` names.
    """

    beside: ClassVar[tuple[str, ...]] = ()
    """What the state of a parameter holds beside mean and std: zeros at first, a single one for names in ``weight``."""
    counts_examples: ClassVar[bool] = False
    """Whether the update cannot do without the number of examples."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with settings of their own where given."""
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            mean = self.state[p]["mean"]
            for name in self.beside:
                number = name.endswith("weight")
                self.state[p][name] = mean.new_zeros(()) if number else torch.zeros_like(mean)

    def next_posterior(
        self, old: Gaussian, e_g: Tensor, e_g_eps: Tensor, examples: int, group: Group, state: State
    ) -> tuple[Gaussian, State]:
        """The posterior of one parameter after a step, and what has changed beside it.

        Args:
            old: the posterior.
            e_g: E[g] of the loss summed over the batch.
            e_g_eps: E[g eps].
            examples: of the batch; 0 where it is not known.
            group: the parameter's settings.
            state: what is kept of the parameter.
        """
        raise NotImplementedError

    @torch.no_grad()
    def _update(self, step: Step, estimate: Callable[[], Expectations]) -> Expectations:
        expectations = estimate()
        needed = self.counts_examples
        examples = self._count(step, expectations) if needed else expectations.examples or step.examples
        groups, found = self._groups(), []
        for p, mean, std, (e_g, e_g_eps) in zip(
            step.params, step.means, step.stds, expectations.scaled(step.stds), strict=True
        ):
            old = Gaussian(mean, std)
            if e_g is None or e_g_eps is None:
                found.append((old, State()))
                continue
            new, beside = self.next_posterior(old, e_g, e_g_eps, examples, groups[p], self.state[p])
            found.append((new._replace(std=self._bounded(p, new.std, groups[p])), beside))
        if wrong := overflown(step.params, [new for new, _ in found]):
            self._refuse(step, expectations, wrong, "the step leads to a NaN or infinite mean")
        for p, mean, std, (new, beside) in zip(step.params, step.means, step.stds, found, strict=True):
            mean.copy_(new.mean)
            std.copy_(new.std)
            for name, value in beside.items():
                self.state[p][name].copy_(value)
        return expectations

    def _count(self, step: Step, expectations: Expectations) -> int:
        return self._examples(step, expectations, type(self).__name__)

    def _bounded(self, p: Tensor, std: Tensor, group: Group) -> Tensor:
        """Inside the format's bounds and the group's own."""
        std = std.clamp(*std_bounds(std.dtype))
        if group["std_min"] is not None:
            std = std.clamp(min=group["std_min"])
        ceiling = std_max_of(p, self.state, group)
        return std if ceiling is None else std.clamp(max=ceiling)

    @torch.no_grad()
    def _relative_move(self, step: Step, expectations: Expectations) -> float:
        groups, examples = self._groups(), expectations.examples or step.examples
        moved, size = 0.0, 0.0
        for p, mean, std, (e_g, e_g_eps) in zip(
            step.params, step.means, step.stds, expectations.scaled(step.stds), strict=True
        ):
            if e_g is not None and e_g_eps is not None:
                old = Gaussian(mean, std)
                new, _ = self.next_posterior(old, e_g, e_g_eps, examples, groups[p], self.state[p])
                moved += float((new.mean - mean).norm()) ** 2
                size += float(mean.norm()) ** 2
        return (moved / size) ** 0.5 if size else 1.0


def faded(average: Tensor, weight: Tensor, new: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """A moving average of what has been seen, and the weight of all it holds: their quotient has no start-up bias.

    >>> faded(torch.zeros(1), torch.zeros(()), torch.ones(1), 0.75)
    (tensor([0.2500]), tensor(0.2500))
    """
    return torch.lerp(average, new, 1 - beta), weight * beta + (1 - beta)
