"""The sums over sampled networks from which a step is made."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass
class Pending:
    """The sums over the samples of a step that is under way."""

    params: list[Tensor]
    e_g: list[Tensor] = field(default_factory=list)
    e_g_eps: list[Tensor] = field(default_factory=list)
    untouched: set[Tensor] = field(default_factory=set)
    count: int = 0
    losses: list[Tensor] = field(default_factory=list)
    eps: list[Tensor] | None = None
    scale: float = 1.0
    """What turns the sums over samples into expectations of the summed loss."""
