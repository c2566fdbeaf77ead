"""What a learner is: the one interface between methods and the rest of the package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import Tensor

from bgd.errors import SettingError
from bgd.scenarios.types import Batch, Knowledge


class MethodError(SettingError):
    """A method that cannot run as requested: unknown, wrongly set, or in need of what the scenario withholds.

    >>> raise MethodError("no method 'adm': did you mean 'adam'?")
    Traceback (most recent call last):
    bgd.methods.common.types.MethodError: no method 'adm': did you mean 'adam'?
    """


@runtime_checkable
class Learner(Protocol):
    """Learns from one batch at a time, and receives no more than its scenario reveals.

    Where the data of a finished task comes from: several methods (EWC, MAS) measure how important each weight
    was to the task just ended, and need its data a second time to do so. The learner keeps no copy and holds no
    reference to a data set. Instead the runner, at a boundary that the scenario reveals, calls ``end_task``
    with a second pass over the training batches of that task, in any order and batch size. Methods without
    consolidation ignore it. In task-agnostic scenarios ``end_task`` is never called.

    What the runner and the reports read of a method are its class attributes, never its name.

    Attributes:
        needs: what the learner must be given while it trains: nothing, task boundaries, or task ids. A learner may
            need less than its class, depending on its settings.
        joint: trained on all tasks at once, on a stream that mixes them.
        upper_bound: a reference that the others are compared with, and that never counts as the best of them.
        train_size_per_task: the setting ``train_size`` gets one number for each task, rather than their sum.

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
    joint: ClassVar[bool]
    upper_bound: ClassVar[bool]
    train_size_per_task: ClassVar[bool]

    def observe(self, x: Tensor, y: Tensor, task: int | Tensor | None = None) -> float:
        """Learn from one batch; returns its mean loss before the update.

        Terms with a closed-form gradient (quadratic penalties, KL) are not part of it.
        """

    def end_task(self, batches: Iterable[Batch] = ()) -> None:
        """Close a task: called only where the scenario reveals boundaries, with the task's data a second time."""

    def predict(self, x: Tensor, task: int | Tensor | None = None) -> Tensor:
        """Scores (B, outputs), the higher the likelier; outputs outside the given task's head are -inf.

        Never changes the learner: training continues bit for bit as if it had not been called.
        """

    def state_dict(self) -> dict[str, Any]:
        """Everything: weights, optimizer, importances, generators, counters; fit for ``weights_only=True``."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from the state of the learner that returned ``state``."""
