"""Continual backprop: gradient descent that renews the hidden units of least use (Dohare et al., 2024)."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from bgd.optim.noise import fold
from bgd.optim.validation import DECAY, NOT_NEGATIVE, Rule, resolve_seed

_RULES: dict[str, Rule] = {
    "lr": NOT_NEGATIVE,
    "replacement_rate": DECAY,
    "utility_decay": DECAY,
    "maturity": NOT_NEGATIVE,
    "weight_decay": NOT_NEGATIVE,
}


class ContinualBackprop(Optimizer):
    r"""SGD; and at each step a small share of the mature hidden units, those of least use, begins anew.

    The utility of a hidden unit i, with output h_i and outgoing weights w_ki, is a moving average of

    .. math:: \overline{|h_i|} \, \sum_k |w_{ki}|

    over the examples of a batch. Of the units older than ``maturity`` steps the fraction ``replacement_rate`` is
    replaced, on average: new incoming weights with the spread of the initial ones, outgoing weights 0, and the average
    of what it gave goes to the biases of the next layer.

    Hidden units are those between linear layers that follow each other: the outputs of one are, after an activation,
    the inputs of the next. Those of convolutions are not renewed; a model without any others is refused.

    Args:
        model: whose parameters learn; hooks of its linear layers see their inputs while it trains.
        lr: step size.
        replacement_rate: the fraction of the mature units that a step replaces.
        utility_decay: of the moving averages.
        maturity: how many steps a new unit is safe.
        weight_decay: lambda: w <- w - lr (g + lambda w).
        seed: of the new weights. Default: torch's global seed, which is read and never changed.

    >>> model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> optimizer = ContinualBackprop(model, lr=0.1)
    >>> model(torch.ones(4, 3)).square().sum().backward()
    >>> optimizer.step()
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 0.01,
        replacement_rate: float = 1e-4,
        utility_decay: float = 0.99,
        maturity: int = 100,
        weight_decay: float = 0.0,
        seed: int | None = None,
    ) -> None:
        settings = {
            "lr": lr,
            "replacement_rate": replacement_rate,
            "utility_decay": utility_decay,
            "maturity": maturity,
            "weight_decay": weight_decay,
        }
        for name, rule in _RULES.items():
            if not rule.holds(settings[name]):
                raise ValueError(f"{name} must be {rule.what}, got {settings[name]!r}")
        layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
        self._pairs = [(a, b) for a, b in pairwise(layers) if a.out_features == b.in_features]
        if not self._pairs:
            raise ValueError(f"{type(model).__name__} has no hidden units between two linear layers to replace")
        super().__init__(model.parameters(), {**settings, "seed": resolve_seed(seed, None)})
        self._outputs: dict[int, Tensor] = {}
        for number, (before, after) in enumerate(self._pairs):
            after.register_forward_pre_hook(_UnitHook(self, number))
            zeros = after.weight.new_zeros(after.in_features)
            names = ("utility", "mean", "age")
            self.state[after.weight].update({name: zeros.clone() for name in names})
            self.state[after.weight]["due"] = after.weight.new_zeros(())
            self.state[after.weight]["spread"] = before.weight.detach().std() * 3**0.5
            self.state[after.weight]["step"] = torch.zeros(())

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Descend, then replace units; returns the closure's loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad + group["weight_decay"] * p, alpha=-group["lr"])
        for number, pair in enumerate(self._pairs):
            outputs = self._outputs.pop(number, None)
            if outputs is not None and all(layer.weight.requires_grad for layer in pair):
                self._replace(number, *pair, outputs)
        return loss

    def _replace(self, number: int, before: nn.Linear, after: nn.Linear, outputs: Tensor) -> None:
        group, state = self.param_groups[0], self.state[after.weight]
        decay = group["utility_decay"]
        state["step"] += 1
        state["age"] += 1
        state["utility"].lerp_(outputs.abs().mean(0) * after.weight.abs().sum(0), 1 - decay)
        state["mean"].lerp_(outputs.mean(0), 1 - decay)
        mature = state["age"] > group["maturity"]
        state["due"] += group["replacement_rate"] * mature.sum()
        count = min(int(state["due"]), int(mature.sum()))
        if not count:
            return
        state["due"] -= count
        held = 1 - decay ** state["age"]
        utility = torch.where(mature, state["utility"] / held, torch.inf)
        units = utility.argsort(stable=True)[:count]
        if after.bias is not None:
            after.bias.add_(after.weight[:, units] @ (state["mean"] / held)[units])
        generator = torch.Generator(outputs.device).manual_seed(fold(group["seed"], number, int(state["step"])))
        new = torch.rand(count, before.in_features, generator=generator, device=outputs.device)
        before.weight[units] = ((2 * new - 1) * state["spread"]).to(before.weight.dtype)
        if before.bias is not None:
            before.bias[units] = 0
        after.weight[:, units] = 0
        for name in ("utility", "mean", "age"):
            state[name][units] = 0

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("ContinualBackprop belongs to its model and is not copied: use its state_dict()")


class _UnitHook:
    """Shows an optimizer what the hidden units before a layer put out; a copy of the layer shows it to nobody."""

    def __init__(self, optimizer: ContinualBackprop | None, number: int) -> None:
        self._optimizer = weakref.ref(optimizer) if optimizer is not None else lambda: None
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _UnitHook, (None, self._number)

    def __call__(self, module: nn.Linear, inputs: tuple[Tensor, ...]) -> None:
        optimizer = self._optimizer()
        if optimizer is not None and module.training and torch.is_grad_enabled():
            optimizer._outputs[self._number] = inputs[0].detach().flatten(0, -2).to(module.weight.dtype)
