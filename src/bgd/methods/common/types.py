"""What a learner is: the one interface between methods and the rest of the package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from bgd.errors import SettingError
from bgd.scenarios.types import Batch, Knowledge


class MethodError(SettingError):
    """A method that cannot run as asked: unknown, wrongly set, or in need of what the scenario withholds.

    >>> raise MethodError("no method 'adm': did you mean 'adam'?")
    Traceback (most recent call last):
    bgd.methods.common.types.MethodError: no method 'adm': did you mean 'adam'?
    """


@runtime_checkable
class Learner(Protocol):
    """Learns from one batch at a time, and is told no more than its scenario reveals.

    Where the data of a finished task comes from: several methods (EWC, MAS) measure how important each weight
    was to the task just ended, and need its data once more to do so. The learner keeps no copy and holds no
    reference to a data set. Instead the runner, at a boundary that the scenario reveals, calls ``end_task``
    with one more pass over the training batches of that task, in any order and batch size. Methods that do
    not look back ignore it. In task-agnostic scenarios ``end_task`` is never called.

    Attributes:
        needs: what the learner must be told while it trains.
        joint: whether it is meant for a stream that mixes all tasks (only Offline, the upper bound).

    >>> import torch
    >>> from bgd.methods import create
    >>> from bgd.scenarios.heads import Heads
    >>> from bgd.scenarios.types import Scenario
    >>> domain = Scenario("domain", Knowledge.TASK_ID, task_in_testing=False, shared_head=True)
    >>> learner = create("sgd", torch.nn.Linear(4, 2), Heads(2, ((0, 1),)), domain)
    >>> isinstance(learner, Learner)
    True
    """

    needs: Knowledge
    joint: bool

    def observe(self, x: Tensor, y: Tensor, task: int | Tensor | None = None) -> float:
        """Learn from one batch; returns its mean loss before the update.

        Terms with a closed-form gradient (quadratic penalties, KL) are not part of it.
        """

    def end_task(self, batches: Iterable[Batch] = ()) -> None:
        """Close a task: called only where the scenario reveals boundaries, with the task's data once more."""

    def predict(self, x: Tensor, task: int | Tensor | None = None) -> Tensor:
        """Scores (B, outputs), the higher the likelier; outputs outside the given task's head are -inf.

        Never changes the learner: training goes on bit for bit as if it had not been called.
        """

    def state_dict(self) -> dict[str, Any]:
        """Everything: weights, optimizer, importances, generators, counters; fit for ``weights_only=True``."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where the learner that gave ``state`` stood."""
