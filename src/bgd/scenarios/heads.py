"""Which outputs of the network belong to which task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bgd.scenarios.errors import ScenarioError


@dataclass(frozen=True)
class Heads:
    """The layout of the output layer: C shared outputs, or T x C separate ones.

    ``tasks[t]`` lists the outputs of task t. With a shared head every task lists the same ones; with separate
    heads no two tasks share any.

    >>> Heads(outputs=4, tasks=((0, 1), (2, 3))).shared
    False
    >>> Heads(outputs=3, tasks=((0, 1), (1, 2)))
    Traceback (most recent call last):
    bgd.scenarios.errors.ScenarioError: tasks 0 and 1 both use output 1: heads are either the same for all ...
    """

    outputs: int
    tasks: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not self.tasks:
            raise ScenarioError("heads for no task: give at least one")
        for t, used in enumerate(self.tasks):
            if not used or len(set(used)) < len(used) or min(used) < 0 or max(used) >= self.outputs:
                raise ScenarioError(
                    f"task {t} uses outputs {used}: each must be listed once and lie in 0..{self.outputs - 1}"
                )
        if self.shared:
            return
        owner: dict[int, int] = {}
        for t, used in enumerate(self.tasks):
            for output in used:
                if output in owner:
                    raise ScenarioError(
                        f"tasks {owner[output]} and {t} both use output {output}: heads are either the same "
                        "for all tasks or share nothing"
                    )
                owner[output] = t

    @property
    def shared(self) -> bool:
        """Whether all tasks use the same outputs."""
        return len(set(self.tasks)) <= 1


def shared_heads(tasks: int, classes: int) -> Heads:
    """C outputs, used by every task.

    >>> shared_heads(tasks=3, classes=2)
    Heads(outputs=2, tasks=((0, 1), (0, 1), (0, 1)))
    """
    return Heads(classes, (tuple(range(classes)),) * tasks)


def separate_heads(classes: Sequence[int]) -> Heads:
    """T x C outputs: each task has its own, as many as it has classes.

    >>> separate_heads([2, 3])
    Heads(outputs=5, tasks=((0, 1), (2, 3, 4)))
    """
    starts = [sum(classes[:t]) for t in range(len(classes))]
    return Heads(sum(classes), tuple(tuple(range(s, s + c)) for s, c in zip(starts, classes, strict=True)))
