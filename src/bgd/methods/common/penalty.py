"""The quadratic penalty that keeps important weights near their values after old tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

Weights = dict[str, Tensor]
"""One tensor per parameter, by its name."""


class QuadraticPenalty:
    """R(theta) = sum_i Omega_i (theta_i - theta*_i)^2, with no 1/2; plus a constant without a gradient.

    The gradient 2 c Omega (theta - theta*) is added to ``p.grad`` in closed form: no second backward pass,
    and with c = 0 the gradients stay as they are, bit for bit.

    Args:
        parameters: the weights to penalise, by name. The penalty is 0 before the first ``accumulate`` or
            ``add_task``.

    >>> p = nn.Parameter(torch.tensor([1.0]))
    >>> penalty = QuadraticPenalty({"p": p})
    >>> penalty.accumulate({"p": torch.tensor([3.0])})
    >>> with torch.no_grad(): _ = p.add_(2.0)
    >>> penalty.value()
    12.0
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter]) -> None:
        self.parameters = dict(parameters)
        self.importance: Weights = {}
        self.anchor: Weights = {}
        self.constant = 0.0

    @torch.no_grad()
    def accumulate(self, importance: Weights, decay: float = 1.0) -> None:
        """Omega <- decay Omega + importance, theta* <- theta: one anchor, at the current weights."""
        for name, p in self.parameters.items():
            old = self.importance.get(name)
            self.importance[name] = importance[name] + (0 if old is None else decay * old)
            self.anchor[name] = p.detach().clone()

    @torch.no_grad()
    def add_task(self, importance: Weights) -> None:
        """R <- R + sum_i importance_i (theta_i - theta_now_i)^2: each task keeps an anchor of its own.

        A sum of quadratics is again one: with A = Omega + importance, its centre is the mean of the two
        anchors weighted by importance, and the rest, Omega importance / A (theta_now - theta*)^2, is a
        constant. So any number of tasks costs the memory and the time of one.
        """
        for name, p in self.parameters.items():
            new = importance[name]
            if name not in self.importance:
                self.importance[name], self.anchor[name] = new.clone(), p.detach().clone()
                continue
            old, total = self.importance[name], self.importance[name] + new
            share = torch.where(total > 0, new / total, 1.0)
            shift = p.detach() - self.anchor[name]
            self.constant += float((old * share * shift.square()).sum())
            self.importance[name] = total
            self.anchor[name] = self.anchor[name] + share * shift

    @torch.no_grad()
    def value(self) -> float:
        """R(theta) at the current weights."""
        terms = ((o * (self.parameters[n] - self.anchor[n]).square()).sum() for n, o in self.importance.items())
        return float(sum(terms)) + self.constant

    @torch.no_grad()
    def add_gradient(self, coefficient: float) -> None:
        """Add 2 c Omega (theta - theta*) to the gradients; weights without one are not updated, and need none."""
        for name, omega in self.importance.items():
            p = self.parameters[name]
            if p.grad is not None:
                p.grad.addcmul_(omega, p - self.anchor[name], value=2 * coefficient)

    @torch.no_grad()
    def proximal_step(self, coefficient: float, lr: float) -> None:
        """The proximal step: theta <- argmin_z |z - theta|^2 / (2 lr) + c sum Omega (z - theta*)^2.

        In closed form theta <- theta + k / (1 + k) (theta* - theta), k = 2 lr c Omega: stable for any c,
        where the gradient of the penalty diverges as soon as k > 2 (k > 1 if the anchor moves at every step).
        """
        for name, omega in self.importance.items():
            k = omega * (2 * lr * coefficient)
            self.parameters[name].lerp_(self.anchor[name], k / (1 + k))

    def state_dict(self) -> dict[str, Any]:
        """Importances, anchors, and the constant."""
        return {"importance": self.importance, "anchor": self.anchor, "constant": self.constant}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a ``state_dict``."""
        for key in ("importance", "anchor"):
            setattr(self, key, {n: t.to(self.parameters[n].device, copy=True) for n, t in state[key].items()})
        self.constant = state["constant"]
