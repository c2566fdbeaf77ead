"""Synaptic intelligence (Zenke et al., 2017)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import nn

from bgd.methods.common.outputs import Outputs
from bgd.methods.common.penalised import Penalised
from bgd.methods.common.penalty import Weights
from bgd.methods.common.types import MethodError
from bgd.scenarios.types import Batch


class SI(Penalised):
    """Loss + coefficient x sum_i Omega_i (theta_i - theta*_i)^2, Omega <- Omega + path / (Delta^2 + damping).

    path = -sum over the task's steps of g (theta_t+1 - theta_t), g the gradient of the loss *without* the
    penalty: the share of each weight in the decrease of the loss. Delta is its change over the task.

    Args:
        lr: learning rate.
        coefficient: Hsu et al.: Split task 300, domain 3000, class 600; Permuted task 1, domain 10, class 0.3.
        optimizer: "sgd", "adam" or "adagrad".
        damping: keeps Omega finite where a weight hardly changed.

    >>> from bgd.scenarios.heads import Heads
    >>> SI(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),)))).needs.name
    'BOUNDARIES'
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("penalty", "path", "start")

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        lr: float = 0.001,
        coefficient: float = 1.0,
        optimizer: str = "adam",
        damping: float = 0.1,
    ) -> None:
        if not 0 < damping < math.inf:
            raise MethodError(f"damping={damping}: must be a finite number above 0, for weights that do not change")
        super().__init__(net, outputs, optimizer=optimizer, lr=lr, coefficient=coefficient)
        self.damping = damping
        self.path = {n: torch.zeros_like(p) for n, p in self.penalty.parameters.items()}
        self.start = {n: p.detach().clone() for n, p in self.penalty.parameters.items()}

    @torch.no_grad()
    def before_step(self, batch: Batch) -> None:
        """Store g and theta_t, before the penalty is added to g."""
        weights = self.penalty.parameters.items()
        self._previous = {n: (p.grad.clone(), p.clone()) for n, p in weights if p.grad is not None}
        super().before_step(batch)

    @torch.no_grad()
    def after_step(self, batch: Batch) -> None:
        """Path <- path - g (theta_t+1 - theta_t)."""
        super().after_step(batch)
        for name, (g, old) in self._previous.items():
            self.path[name].addcmul_(g, self.penalty.parameters[name] - old, value=-1)
        del self._previous

    @torch.no_grad()
    def importance(self, batches: Iterable[Batch]) -> Weights:  # noqa: ARG002
        """Omega = path / (Delta^2 + damping); then path <- 0, for the next task."""
        omega = {}
        for name, p in self.penalty.parameters.items():
            delta = p - self.start[name]
            omega[name] = self.path[name] / (delta.square() + self.damping)
            self.path[name].zero_()
            self.start[name] = p.detach().clone()
        return omega
