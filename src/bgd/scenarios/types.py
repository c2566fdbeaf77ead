"""What a learner gets from a scenario, and the rules that decide it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from torch import Tensor

from bgd.scenarios.errors import ScenarioError


class Knowledge(IntEnum):
    """Ordered: a learner that needs less than a scenario reveals can run in it.

    >>> Knowledge.NOTHING < Knowledge.BOUNDARIES < Knowledge.TASK_ID
    True
    """

    NOTHING = 0
    BOUNDARIES = 1
    TASK_ID = 2


class Batch(NamedTuple):
    """All that a learner is given at one iteration.

    ``x`` is (B, C, H, W) float32, normalised. ``y`` (B,) int64 holds *outputs of the network*: 0..C-1 with
    a shared head, and the task's own outputs (``Heads.tasks[t]``) with separate ones. ``task`` is None unless
    the scenario reveals it; otherwise the task's number, or a (B,) int64 tensor where a batch mixes tasks.

    The tensors own their memory: nothing of the data set can be reached through them.

    >>> import torch
    >>> x, y, task = Batch(torch.zeros(2, 1, 8, 8), torch.tensor([0, 1]))
    >>> task is None
    True
    """

    x: Tensor
    y: Tensor
    task: int | Tensor | None = None


@dataclass(frozen=True)
class Scenario:
    """The rules of a scenario: what is revealed in training and testing, and who shares the head.

    Args:
        name: task, domain, class, discrete task-agnostic or continuous task-agnostic.
        reveals: what a learner is given besides the samples while it trains.
        task_in_testing: whether the task is given along with a test sample.
        shared_head: whether all tasks use the same C outputs (else T x C).
        boundaries: whether one task ends where the next begins.

    >>> domain = Scenario("domain", Knowledge.TASK_ID, task_in_testing=False, shared_head=True)
    >>> domain.reveals >= Knowledge.BOUNDARIES
    True
    """

    name: str
    reveals: Knowledge
    task_in_testing: bool
    shared_head: bool
    boundaries: bool = True

    def __post_init__(self) -> None:
        if not self.boundaries and self.reveals > Knowledge.NOTHING:
            raise ScenarioError(
                f"scenario {self.name!r} reveals {self.reveals.name} but has no boundaries between tasks: "
                "set boundaries=True, or reveals=Knowledge.NOTHING"
            )
