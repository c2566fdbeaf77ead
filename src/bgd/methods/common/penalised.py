"""Learners that add a quadratic penalty to the loss: what L2, EWC, Online EWC, SI and MAS share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import nn

from bgd.methods.common.base import Base, optimizer_for, trainable_parameters
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.penalty import QuadraticPenalty, Weights
from bgd.scenarios.types import Batch, Knowledge
from bgd.validation import check_numbers, check_whole


class Penalised(Base):
    """Minimises loss + coefficient x sum_i Omega_i (theta_i - theta*_i)^2; a method defines Omega.

    **Every n iterations.** With ``consolidate_every=n`` the learner needs no boundaries: at every n-th
    iteration it does what it would do at the end of a task, on the current batch. The order within such an
    iteration is: gradient of loss and penalty at theta_t, consolidation (Omega grows by the batch's
    importance at theta_t, the anchor moves to theta_t), step to theta_t+1. The order matters: were the anchor
    moved *after* the step, then with n = 1 the weights would always equal their anchor, the penalty's
    gradient would always be 0, and the method would be plain SGD. As it is, with n = 1 the anchor are the
    weights of the iteration before, and the penalty opposes the last update, 2 c Omega (theta_t - theta_t-1): a
    friction that grows with importance. The paper states only that the core action was taken at every
    iteration; this order is our reading of it.

    That friction is stable under SGD only while 2 lr c Omega < 1, and Omega keeps growing: in gradient form a long
    stream ends in an error about a loss that is not finite (ours on continuous Permuted MNIST, by Online EWC with the
    paper's lr 0.01 and coefficient 0.1: after 5,771 iterations). Therefore ``proximal`` is the default in this case:
    instead of the penalty's gradient, its proximal step follows the optimizer's, theta <- theta + k / (1 + k)
    (theta* - theta) with k = 2 lr c Omega. It is stable for any k. With n = 1 it divides the step of each weight by
    1 + k: the more important, the slower, and to first order in k the same as the friction.

    Args:
        optimizer: "sgd", "adam" or "adagrad".
        lr: its learning rate.
        coefficient: the strength of the penalty.
        consolidate_every: None (at the end of a task), or a number of iterations.
        proximal: take the penalty's step exactly rather than by its gradient; None: only where
            ``consolidate_every`` is set.
    """

    needs = Knowledge.BOUNDARIES
    state_attributes: ClassVar[tuple[str, ...]] = ("penalty",)

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        optimizer: str,
        lr: float,
        coefficient: float,
        consolidate_every: int | None = None,
        proximal: bool | None = None,
    ) -> None:
        super().__init__(net, outputs, optimizer_for(net.parameters(), optimizer, lr))
        check_numbers(coefficient=coefficient)
        if consolidate_every is not None:
            check_whole(1, consolidate_every=consolidate_every)
            self.needs = Knowledge.NOTHING
        self.coefficient = coefficient
        self.consolidate_every = consolidate_every
        self.proximal = consolidate_every is not None if proximal is None else proximal
        self.penalty = QuadraticPenalty(trainable_parameters(net))

    def importance(self, batches: Iterable[Batch]) -> Weights:
        """Omega of the task just ended."""
        raise NotImplementedError

    def consolidate(self, batches: Iterable[Batch]) -> None:
        """The core action: Omega grows, the anchor moves to the current weights."""
        self.penalty.accumulate(self.importance(batches))

    def before_step(self, batch: Batch) -> None:
        """Add the penalty's gradient; consolidate at every n-th iteration."""
        if not self.proximal:
            self.penalty.add_gradient(self.coefficient)
        if self.consolidate_every and (self.iteration + 1) % self.consolidate_every == 0:
            self.consolidate([batch])
            self.outputs.clear_current()

    def after_step(self, batch: Batch) -> None:  # noqa: ARG002
        """The proximal step, if enabled."""
        if self.proximal:
            self.penalty.proximal_step(self.coefficient, self.optimizer.param_groups[0]["lr"])

    def end_task(self, batches: Iterable[Batch] = ()) -> None:
        """Consolidate, unless that happens every n iterations anyway."""
        if self.consolidate_every is None:
            self.consolidate(batches)
        self.outputs.clear_current()


def ones_like(parameters: dict[str, nn.Parameter]) -> Weights:
    """Every weight as important as any other.

    >>> ones_like({"p": nn.Parameter(torch.zeros(2))})
    {'p': tensor([1., 1.])}
    """
    return {name: torch.ones_like(p) for name, p in parameters.items()}
