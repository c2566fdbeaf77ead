"""What learners have in common: a network, its outputs, an optimizer, and a state that is saved whole."""

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

_LEARNER = 2  # separates the learner's generator from other uses of a run's seed

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
    trainable = [p for p in parameters if p.requires_grad]
    settings: dict[str, Any] = {"lr": lr}
    if name != "sgd" and all(p.device.type == "cpu" and p.is_floating_point() for p in trainable):
        settings["fused"] = True  # a quarter of the time of torch's default on a CPU
    return OPTIMIZERS[name](trainable, **settings)


def trainable_parameters(net: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that require gradients, by name.

    >>> list(trainable_parameters(nn.Linear(1, 1)))
    ['weight', 'bias']
    """
    return {name: p for name, p in net.named_parameters() if p.requires_grad}


class Base:
    """Gradient descent on the loss of each batch: a complete learner, and the base class of all others.

    A method overrides the hook it needs: ``before_step`` (gradients are computed, weights not yet updated),
    ``after_step``, or ``end_task``; and lists in ``state_attributes`` the attributes that belong to its checkpoint:
    tensors, numbers, dicts of them, generators, or anything with a ``state_dict`` of its own. Its keyword-only
    arguments are its settings.

    The other class attributes are what the runner and the reports need to know of a method: see
    :class:`~bgd.methods.common.types.Learner`.

    Args:
        net: any module that maps (B, ...) to scores (B, outputs).
        outputs: which outputs the loss runs over.
        optimizer: over the parameters of ``net``.
    """

    needs: Knowledge = Knowledge.NOTHING
    joint: ClassVar[bool] = False
    upper_bound: ClassVar[bool] = False
    train_size_per_task: ClassVar[bool] = False
    state_attributes: ClassVar[tuple[str, ...]] = ()
    computation_settings: ClassVar[tuple[str, ...]] = ()
    """Settings that change how a result is computed, not what it is."""

    def __init__(self, net: nn.Module, outputs: Outputs, optimizer: torch.optim.Optimizer) -> None:
        self.net = net
        self.outputs = outputs.to(device_of(net))
        self.optimizer = optimizer
        self.iteration = 0

    def observe(self, x: Tensor, y: Tensor, task: int | Tensor | None = None) -> float:
        """One step of the optimizer on the mean loss of the batch; returns that loss."""
        self.outputs.add_labels(y)
        if not self.net.training:
            self.net.train()
        self.optimizer.zero_grad()
        loss = self.loss(x, y, task)
        value = self.check_finite(loss)
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
        """The scores of the network, checked against the number of outputs of the heads."""
        scores: Tensor = self.net(x)
        check_outputs(self.net, scores, self.outputs.heads)
        return scores

    def before_step(self, batch: Batch) -> None:
        """Gradients are in ``p.grad``; the weights have not been updated yet."""

    def after_step(self, batch: Batch) -> None:
        """The weights have been updated."""

    def end_task(self, batches: Iterable[Batch] = ()) -> None:  # noqa: ARG002
        """Nothing to do at a boundary."""
        self.outputs.clear_current()

    @torch.no_grad()
    def predict(self, x: Tensor, task: int | Tensor | None = None) -> Tensor:
        """The scores of the network, limited to the head of the task where it is given."""
        with evaluating(self.net):
            return self.outputs.restrict(self.scores(x), task)

    def check_finite(self, loss: Tensor) -> float:
        """The value of the loss; an error rather than a step into NaN."""
        value = loss.item()
        if not math.isfinite(value):
            raise MethodError(
                f"{type(self).__name__}: the loss of iteration {self.iteration} is {value}, and no step was taken. "
                "Check the input for NaN, or lower lr (and the coefficient of the penalty)"
            )
        return value

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        return {name: _snapshot(getattr(self, name)) for name in self._attributes()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a ``state_dict`` of a learner made with the same settings."""
        attributes = self._attributes()
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
                # a copy, since an optimizer would keep the tensors and update them in place
                value.load_state_dict(copy.deepcopy(state[name]))
            else:
                setattr(self, name, _to_device(copy.deepcopy(state[name]), device_of(self.net)))

    def _attributes(self) -> tuple[str, ...]:
        return ("net", "outputs", "optimizer", "iteration", *self.state_attributes)


def device_of(net: nn.Module) -> torch.device:
    """The device of the network's first parameter.

    >>> device_of(nn.Linear(1, 1))
    device(type='cpu')
    """
    return next((p.device for p in net.parameters()), torch.device("cpu"))


def generator_for(net: nn.Module, seed: int) -> torch.Generator:
    """A learner's own source of randomness, on the device of its network: the global generator stays untouched.

    It is not seeded with the seed itself, which also initialises the weights: the first noise would equal them.

    >>> one, other = (generator_for(nn.Linear(1, 1), seed=7) for _ in range(2))
    >>> one.initial_seed() == other.initial_seed() != 7
    True
    """
    return torch.Generator(device_of(net)).manual_seed(fold(seed, _LEARNER))


def _snapshot(value: Any) -> Any:
    """A copy in plain containers, tensors and numbers, which further training does not change."""
    if isinstance(value, torch.Generator):
        return value.get_state()
    return copy.deepcopy(value.state_dict() if hasattr(value, "state_dict") else value)


def _to_device(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: _to_device(v, device) for key, v in value.items()}
    if isinstance(value, list):
        return [_to_device(v, device) for v in value]
    return value
