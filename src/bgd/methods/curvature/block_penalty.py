"""A quadratic penalty with a structured precision: what the Laplace approximations hold weights with."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bgd.methods.curvature.kronecker import Block, Curvature, Diagonal, block_of, join, part
from bgd.methods.curvature.task_curvature import Groups


class BlockPenalty:
    """R(theta) = 1/2 D^T Lambda D - pull^T D + constant, D = theta - anchor: -log of a Gaussian, unnormalised.

    Lambda is a sum of blocks, one list for each group of parameters. Diagonals add up to one. The sum of two Kronecker
    products is none, so each of them is kept, and the sum stays exact: memory and time grow with the number of tasks.

    ``pull`` is minus the gradient of R at the anchor. It is 0 for one Gaussian around the anchor, and carries the
    gradients of several around different ones. The gradient Lambda D - pull joins ``p.grad`` in closed form.

    Args:
        groups: the parameters of each block. Nothing is held at first.
        prior_precision: of a first Gaussian around 0, the same for every weight.

    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> penalty = BlockPenalty({"p": [p]})
    >>> penalty.grow({"p": Diagonal(torch.tensor([[3.0]]))})
    >>> with torch.no_grad(): _ = p.add_(2.0)
    >>> penalty.value()
    6.0
    """

    def __init__(self, groups: Groups, prior_precision: float = 0.0) -> None:
        self.groups = groups
        self.prior_precision = prior_precision
        zeros = {name: torch.zeros_like(self._weights(name)) for name in groups}
        self.anchor = zeros if prior_precision else {name: self._weights(name) for name in groups}
        self.pull = {name: torch.zeros_like(zero) for name, zero in zeros.items()}
        self.constant = 0.0
        self.precision: dict[str, list[Block]] = {}
        self.forget()

    def forget(self) -> None:
        """Lambda is that of the prior again."""
        prior = self.prior_precision
        self.precision = {n: [Diagonal(torch.full_like(a, prior))] if prior else [] for n, a in self.anchor.items()}

    @torch.no_grad()
    def move(self, keep: bool) -> None:
        """The anchor moves to the weights of this moment.

        Args:
            keep: R stays the same function, only written around another point; otherwise value and slope are dropped
                there, which is right where the weights are a mode of everything that was learnt so far.
        """
        value = self.value()
        for name in self.groups:
            weights = self._weights(name)
            self.pull[name] = -self._slope(name, weights) if keep else torch.zeros_like(weights)
            self.anchor[name] = weights
        self.constant = value if keep else 0.0

    def grow(self, curvature: Curvature) -> None:
        """Lambda <- Lambda + curvature, around the anchor."""
        for name, block in curvature.items():
            blocks = self.precision[name]
            last = blocks[-1] if blocks else None
            if isinstance(block, Diagonal) and isinstance(last, Diagonal):
                blocks[-1] = Diagonal(last.d + block.d)
            else:
                blocks.append(block)

    @torch.no_grad()
    def value(self) -> float:
        """R at the weights of this moment."""
        total = self.constant
        for name, blocks in self.precision.items():
            d = self._weights(name) - self.anchor[name]
            total += float(sum(block.quadratic(d) for block in blocks)) / 2 - float((self.pull[name] * d).sum())
        return total

    @torch.no_grad()
    def add_gradient(self, coefficient: float) -> None:
        """Add coefficient x (Lambda D - pull) to the gradients; weights without one do not move, and need none."""
        for name, parameters in self.groups.items():
            if not self.precision[name] or all(p.grad is None for p in parameters):
                continue
            for p, slope in zip(parameters, part(self._slope(name, self._weights(name)), parameters), strict=True):
                if p.grad is not None:
                    p.grad.add_(slope, alpha=coefficient)

    def state_dict(self) -> dict[str, Any]:
        """Precision, anchors, pulls and the constant, in plain containers."""
        precision = {name: [list(block) for block in blocks] for name, blocks in self.precision.items()}
        return {"precision": precision, "anchor": self.anchor, "pull": self.pull, "constant": self.constant}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a ``state_dict``."""

        def here(name: str, tensor: Tensor) -> Tensor:
            return tensor.to(self.groups[name][0].device, copy=True)

        for key in ("anchor", "pull"):
            setattr(self, key, {name: here(name, t) for name, t in state[key].items()})
        self.constant = state["constant"]
        self.precision = {
            name: [block_of([here(name, t) for t in parts]) for parts in blocks]
            for name, blocks in state["precision"].items()
        }

    def _weights(self, name: str) -> Tensor:
        return join([p.detach() for p in self.groups[name]])

    def _slope(self, name: str, weights: Tensor) -> Tensor:
        d = weights - self.anchor[name]
        return sum((block.times(d) for block in self.precision[name]), -self.pull[name])
