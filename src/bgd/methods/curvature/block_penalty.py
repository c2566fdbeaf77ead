"""A quadratic penalty with a structured precision, for the Laplace approximations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bgd.methods.curvature.blocks import Block, Curvature, Diagonal, make_block
from bgd.methods.curvature.layers import join_columns, split_columns
from bgd.methods.curvature.task_curvature import Groups


class BlockPenalty:
    """R(theta) = 1/2 D^T Lambda D + slope^T D + constant, D = theta - anchor: -log of a Gaussian, unnormalised.

    Lambda is a sum of blocks, one list for each group of parameters. Diagonals add up to one. The sum of two Kronecker
    products is not one, so each of them is stored, and the sum is exact: memory and time grow with the number of
    tasks.

    ``slope`` is the gradient of R at the anchor. It is 0 for one Gaussian around the anchor, and the sum of the
    gradients of several around different ones. The gradient Lambda D + slope is added to ``p.grad`` in closed form.

    Args:
        groups: the parameters of each block. The penalty is 0 at first.
        prior_precision: of a first Gaussian around 0, the same for every weight.

    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> penalty = BlockPenalty({"p": [p]})
    >>> penalty.add({"p": Diagonal(torch.tensor([[3.0]]))})
    >>> with torch.no_grad(): _ = p.add_(2.0)
    >>> penalty.value()
    6.0
    """

    def __init__(self, groups: Groups, prior_precision: float = 0.0) -> None:
        self.groups = groups
        self.prior_precision = prior_precision
        zeros = {name: torch.zeros_like(self._weights(name)) for name in groups}
        self.anchor = zeros if prior_precision else {name: self._weights(name) for name in groups}
        self.slope = {name: torch.zeros_like(zero) for name, zero in zeros.items()}
        self.constant = 0.0
        self.precision: dict[str, list[Block]] = {}
        self.reset_precision()

    def reset_precision(self) -> None:
        """Lambda <- that of the prior."""
        prior = self.prior_precision
        self.precision = {n: [Diagonal(torch.full_like(a, prior))] if prior else [] for n, a in self.anchor.items()}

    @torch.no_grad()
    def move_anchor(self, keep: bool) -> None:
        """Anchor <- the current weights.

        Args:
            keep: R stays the same function, expanded around another point; otherwise value and slope are set to 0
                there, which is right where the weights are a mode of all that was learnt so far.
        """
        value = self.value()
        for name in self.groups:
            weights = self._weights(name)
            self.slope[name] = self._gradient(name, weights) if keep else torch.zeros_like(weights)
            self.anchor[name] = weights
        self.constant = value if keep else 0.0

    def add(self, curvature: Curvature) -> None:
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
        """R at the current weights."""
        total = self.constant
        for name, blocks in self.precision.items():
            d = self._weights(name) - self.anchor[name]
            total += float(sum(block.quadratic(d) for block in blocks)) / 2 + float((self.slope[name] * d).sum())
        return total

    @torch.no_grad()
    def add_gradient(self, coefficient: float) -> None:
        """Add coefficient x (Lambda D + slope) to the gradients; weights without one are not updated, and need none."""
        for name, parameters in self.groups.items():
            if not self.precision[name] or all(p.grad is None for p in parameters):
                continue
            gradients = split_columns(self._gradient(name, self._weights(name)), parameters)
            for p, gradient in zip(parameters, gradients, strict=True):
                if p.grad is not None:
                    p.grad.add_(gradient, alpha=coefficient)

    def state_dict(self) -> dict[str, Any]:
        """Precision, anchors, slopes and the constant, in plain containers."""
        precision = {name: [list(block) for block in blocks] for name, blocks in self.precision.items()}
        return {"precision": precision, "anchor": self.anchor, "slope": self.slope, "constant": self.constant}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a ``state_dict``."""

        def copy_of(name: str, tensor: Tensor) -> Tensor:
            return tensor.to(self.groups[name][0].device, copy=True)

        for key in ("anchor", "slope"):
            setattr(self, key, {name: copy_of(name, t) for name, t in state[key].items()})
        self.constant = state["constant"]
        self.precision = {
            name: [make_block([copy_of(name, t) for t in parts]) for parts in blocks]
            for name, blocks in state["precision"].items()
        }

    def _weights(self, name: str) -> Tensor:
        return join_columns([p.detach() for p in self.groups[name]])

    def _gradient(self, name: str, weights: Tensor) -> Tensor:
        d = weights - self.anchor[name]
        return sum((block.times(d) for block in self.precision[name]), self.slope[name])
