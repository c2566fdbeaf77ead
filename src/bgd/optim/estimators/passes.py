"""How the passes of a training loop become the expectations of a step: what an optimizer asks of its estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Literal, NamedTuple, Protocol

from torch import Tensor, nn

from bgd.optim.estimators.base import Estimator, Step
from bgd.optim.estimators.loop import loop
from bgd.optim.noise import NoiseKind
from bgd.optim.validation import check_batch_size

Closure = Callable[[], "Tensor | float"]
Reduction = Literal["sum", "mean"]


class Host(NamedTuple):
    """What passes may ask of the optimizer that they belong to.

    Attributes:
        begin_step: starts a step.
        noise_key: from the number of a pass to the key of its signs.
        enabled: whether passes are to be perturbed now.
        models: finds the modules around the parameters.
        name_of: names a parameter in messages.
    """

    begin_step: Callable[[], Step]
    noise_key: Callable[[int], int]
    enabled: Callable[[], bool]
    models: Callable[[], Iterable[nn.Module]]
    name_of: Callable[[Tensor], str]


class Passes(Protocol):
    """The passes of a step that is under way.

    Attributes:
        samples_networks: whether a step draws K networks, which several processes may share out.
        default_noise: the kind of noise that suits it.
        step: the step that a forward pass has begun; None where ``step()`` begins it.
        shared: numbers of parameters that get one sample for the whole batch, a part of the state dict.
    """

    samples_networks: ClassVar[bool]
    default_noise: ClassVar[NoiseKind]
    step: Step | None
    shared: frozenset[int]

    def estimator(self, closure: Closure | None, samples: int, mean: bool) -> Estimator:
        """What turns the passes so far, or those of a closure, into expectations."""

    def check_batch_size(self, reduction: Reduction, batch_size: int | None) -> None:
        """Refuse a batch size that is missing, or has no use."""

    def clear(self) -> None:
        """Forget the passes of a step that has been taken."""

    def clear_gradients(self) -> None:
        """Forget backward passes whose gradients are thrown away."""

    def detach(self) -> None:
        """Leave the modules alone from now on."""


class SharedPasses:
    """K sampled networks, each for the whole batch, as in the paper: they need a closure.

    Args:
        host: the optimizer, of which nothing is needed.
        shared: likewise.

    >>> SharedPasses().estimator(None, 10, False)
    Traceback (most recent call last):
    RuntimeError: step() without a closure needs estimator="per_example": sampled networks are shared by the whole ...
    """

    samples_networks: ClassVar[bool] = True
    default_noise: ClassVar[NoiseKind] = "torch"
    step: Step | None = None
    shared: frozenset[int] = frozenset()

    def __init__(self, host: Host | None = None, shared: frozenset[int] = frozenset()) -> None:
        del host, shared

    def estimator(self, closure: Closure | None, samples: int, mean: bool) -> Estimator:
        """One call of the closure for each sampled network."""
        del samples, mean  # known to the step
        if closure is None:
            raise RuntimeError(
                'step() without a closure needs estimator="per_example": sampled networks are shared by the whole '
                "batch here, and step(closure) runs it once for each of them"
            )
        return loop(closure)

    def check_batch_size(self, reduction: Reduction, batch_size: int | None) -> None:
        """A mean needs it: nothing else tells how many examples the loss has."""
        check_batch_size(reduction, batch_size)

    def clear(self) -> None:
        """There is nothing to forget."""

    def clear_gradients(self) -> None:
        """There is nothing to forget."""

    def detach(self) -> None:
        """No module is perturbed."""
