"""Which outputs of the network belong to which task."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Heads:
    """The layout of the output layer: C shared outputs, or T x C separate ones.

    ``tasks[t]`` lists the outputs of task t. With a shared head every task lists the same ones.

    >>> Heads(outputs=4, tasks=((0, 1), (2, 3))).shared
    False
    """

    outputs: int
    tasks: tuple[tuple[int, ...], ...]

    @property
    def shared(self) -> bool:
        """Whether all tasks use the same outputs."""
        return len(set(self.tasks)) <= 1
