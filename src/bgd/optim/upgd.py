"""UPGD: utility-based perturbed gradient descent (Elsayed and Mahmood, 2024). It has no posterior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from bgd.optim.base import Params
from bgd.optim.noise import fold
from bgd.optim.validation import DECAY, NOT_NEGATIVE, Rule, resolve_seed

_RULES: dict[str, Rule] = {
    "lr": NOT_NEGATIVE,
    "noise_std": NOT_NEGATIVE,
    "utility_decay": DECAY,
    "weight_decay": NOT_NEGATIVE,
}


class UPGD(Optimizer):
    r"""Gradient descent with noise, which spares the weights that are of use and renews those that are not.

    The utility U of a weight is a moving average of -g w, to first order the loss without it; with
    :math:`\xi \sim N(0, \text{noise\_std}^2)` and the largest utility of all weights,

    .. math::
        w \leftarrow (1 - \eta \lambda) w - 2 \eta (g + \xi) (1 - \operatorname{sigmoid}(U / \max U)).

    Where no utility is above 0, nothing is spared.

    Args:
        params: as for any torch optimizer; groups may have their own ``lr``, ``noise_std``, ``utility_decay`` and
            ``weight_decay``.
        lr: eta.
        noise_std: of xi.
        utility_decay: of the moving average.
        weight_decay: lambda.
        seed: of the noise. Default: torch's global seed, which is read and never changed.

    >>> weight = torch.nn.Parameter(torch.ones(2))
    >>> optimizer = UPGD([weight], lr=0.1, noise_std=0.0)
    >>> weight.square().sum().backward()
    >>> optimizer.step()
    >>> bool((weight < 1).all())
    True
    """

    def __init__(
        self,
        params: Params,
        *,
        lr: float = 0.01,
        noise_std: float = 0.001,
        utility_decay: float = 0.999,
        weight_decay: float = 0.0,
        seed: int | None = None,
    ) -> None:
        defaults = {"lr": lr, "noise_std": noise_std, "utility_decay": utility_decay, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "seed": resolve_seed(seed, None)})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with settings of their own where given."""
        group = self.defaults | param_group
        for name, rule in _RULES.items():
            if not rule.holds(group[name]):
                raise ValueError(f"{name} must be {rule.what}, got {group[name]!r}")
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the utilities, then the weights that have a gradient; returns the closure's loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        found = [
            (group, p, number, self._utility(p, group["utility_decay"]))
            for group in self.param_groups
            for number, p in enumerate(group["params"])
            if p.grad is not None
        ]
        largest = max((float(utility.max()) for *_, utility in found if utility.numel()), default=0.0)
        for group, p, number, utility in found:
            spared = torch.sigmoid(utility / max(largest, torch.finfo(utility.dtype).tiny))
            noise = self._noise(p, group, self.param_groups.index(group), number)
            p.mul_(1 - group["lr"] * group["weight_decay"])
            p.addcmul_(p.grad + noise, 1 - spared, value=-2 * group["lr"])
        return loss

    def _utility(self, p: Tensor, decay: float) -> Tensor:
        """The moving average of -g w, without its start-up bias."""
        state = self.state[p]
        if not state:
            state["utility"], state["utility_weight"] = torch.zeros_like(p), p.new_zeros(())
            state["step"] = torch.zeros(())
        state["step"] += 1
        state["utility"].mul_(decay).addcmul_(p.grad, p, value=decay - 1)
        state["utility_weight"].mul_(decay).add_(1 - decay)
        utility: Tensor = state["utility"] / state["utility_weight"]
        return utility

    def _noise(self, p: Tensor, group: dict[str, Any], *place: int) -> Tensor:
        std: float = group["noise_std"]
        if not std:
            return p.new_zeros(())
        key = fold(group["seed"], *place, int(self.state[p]["step"]))
        generator = torch.Generator(p.device).manual_seed(key)
        return torch.randn(p.shape, generator=generator, dtype=p.dtype, device=p.device) * std
