"""What learners have in common: a network, its outputs, an optimizer, and a memory that is saved whole."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from bgd.inference import evaluating
from bgd.methods.common.outputs import Outputs, check_outputs
from bgd.methods.common.types import MethodError
from bgd.optim.noise import fold
from bgd.scenarios.types import Batch, Knowledge
from bgd.validation import check_choice

_LEARNER = 2  # apart from other uses of a run's seed

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adagrad": torch.optim.Adagrad,
}


def optimizer_for(parameters: Iterable[nn.Parameter], name: str, lr: float) -> torch.optim.Optimizer:
    """A torch optimizer by name, for methods that run on top of any.

    >>> optimizer_for([nn.Parameter(torch.zeros(1))], "adam", 0.001).defaults["lr"]
    0.001
    """
    check_choice("optimizer", name, OPTIMIZERS)
    learning = [p for p in parameters if p.requires_grad]
    settings: dict[str, Any] = {"lr": lr}
    if name != "sgd" and all(p.device.type == "cpu" and p.is_floating_point() for p in learning):
        settings["fused"] = True  # a quarter of the time of torch's default on a CPU
    return OPTIMIZERS[name](learning, **settings)


def trainable(net: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that learn, by name.

    >>> list(trainable(nn.Linear(1, 1)))
    ['weight', 'bias']
    """
    return {name: p for name, p in net.named_parameters() if p.requires_grad}


class Base:
    """Gradient descent on the loss of each batch: a whole learner, and the ground that others stand on.

    A method overrides the moment it changes: ``before_step`` (gradients are there, weights have not moved),
    ``after_step``, or ``end_task``; and lists in ``state_attributes`` the attributes that it must remember: tensors,
    numbers, dicts of them, generators, or anything with a ``state_dict`` of its own.

    Args:
        net: any module that maps (B, ...) to scores (B, outputs).
        outputs: which outputs the loss runs over.
        optimizer: over the parameters of ``net``.
    """

    needs: Knowledge = Knowledge.NOTHING
    joint: bool = False
    upper_bound: bool = False
    train_size_per_task: bool = False
    state_attributes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, net: nn.Module, outputs: Outputs, optimizer: torch.optim.Optimizer) -> None:
        self.net = net
        self.outputs = outputs.to(device_of(net))
        self.optimizer = optimizer
        self.iteration = 0

    def observe(self, x: Tensor, y: Tensor, task: int | Tensor | None = None) -> float:
        """One step of the optimizer on the mean loss of the batch; returns that loss."""
        self.outputs.note(y)
        if not self.net.training:
            self.net.train()
        self.optimizer.zero_grad()
        loss = self.loss(x, y, task)
        value = self.finite(loss)
        loss.backward()  # type: ignore[no-untyped-call]
        batch = Batch(x, y, task)
        self.before_step(batch)
        self.optimizer.step()
        self.iteration += 1
        self.after_step(batch)
        return value

    def loss(self, x: Tensor, y: Tensor, task: int | Tensor | None) -> Tensor:
        """The mean loss of a batch, to be differentiated."""
        return self.outputs.loss(self.scores(x), y, task)

    def scores(self, x: Tensor) -> Tensor:
        """What the network says, once its shape is known to fit the heads."""
        scores: Tensor = self.net(x)
        check_outputs(self.net, scores, self.outputs.heads)
        return scores

    def before_step(self, batch: Batch) -> None:
        """Gradients are in ``p.grad``; the weights have not moved yet."""

    def after_step(self, batch: Batch) -> None:
        """The weights have moved."""

    def end_task(self, batches: Iterable[Batch] = ()) -> None:  # noqa: ARG002
        """Nothing to do at a boundary."""
        self.outputs.forget_current()

    @torch.no_grad()
    def predict(self, x: Tensor, task: int | Tensor | None = None) -> Tensor:
        """The scores of the network, limited to the head of the task where it is given."""
        with evaluating(self.net):
            return self.outputs.restrict(self.scores(x), task)

    def finite(self, loss: Tensor) -> float:
        """The value of the loss; an error rather than a step into NaN."""
        value = loss.item()
        if not math.isfinite(value):
            raise MethodError(
                f"{type(self).__name__}: the loss of iteration {self.iteration} is {value}, and no step was taken. "
                "Look for NaN in the input, or lower lr (and the coefficient of the penalty)"
            )
        return value

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        attributes = ("net", "outputs", "optimizer", "iteration", *self.state_attributes)
        return {name: _freeze(getattr(self, name)) for name in attributes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a ``state_dict`` of a learner made with the same settings."""
        attributes = ("net", "outputs", "optimizer", "iteration", *self.state_attributes)
        if set(state) != set(attributes):
            raise MethodError(
                f"this is not the state of a {type(self).__name__}: it holds {sorted(state)}, "
                f"but {sorted(attributes)} are needed"
            )
        for name in attributes:
            value = getattr(self, name)
            if isinstance(value, torch.Generator):
                value.set_state(state[name].cpu())
            elif hasattr(value, "load_state_dict"):
                value.load_state_dict(copy.deepcopy(state[name]))  # an optimizer would keep the tensors, and move them
            else:
                setattr(self, name, _to(copy.deepcopy(state[name]), device_of(self.net)))


def device_of(net: nn.Module) -> torch.device:
    """Where the network's first parameter lives.

    >>> device_of(nn.Linear(1, 1))
    device(type='cpu')
    """
    return next((p.device for p in net.parameters()), torch.device("cpu"))


def generator_for(net: nn.Module, seed: int) -> torch.Generator:
    """A learner's own source of randomness, beside its network: the global generator stays untouched.

    It does not begin at the seed itself, from which a run draws the weights: the first noise would equal them.

    >>> one, other = (generator_for(nn.Linear(1, 1), seed=7) for _ in range(2))
    >>> one.initial_seed() == other.initial_seed() != 7
    True
    """
    return torch.Generator(device_of(net)).manual_seed(fold(seed, _LEARNER))


def _freeze(value: Any) -> Any:
    """A copy in plain containers, tensors and numbers, safe from further training."""
    if isinstance(value, torch.Generator):
        return value.get_state()
    return copy.deepcopy(value.state_dict() if hasattr(value, "state_dict") else value)


def _to(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: _to(v, device) for key, v in value.items()}
    if isinstance(value, list):
        return [_to(v, device) for v in value]
    return value
