"""Adam (Kingma & Ba, 2015)."""

from __future__ import annotations

from torch import nn

from bgd.methods.common.base import Base, optimizer_for
from bgd.methods.common.outputs import Outputs


class Adam(Base):
    """Adam with torch's defaults, never reset between tasks, and nothing against forgetting.

    Args:
        lr: learning rate. Hsu et al.: 0.001 (Split), 0.0001 (Permuted).

    >>> from bgd.scenarios.heads import Heads
    >>> Adam(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),)))).needs.name
    'NOTHING'
    """

    def __init__(self, net: nn.Module, outputs: Outputs, *, lr: float = 0.001) -> None:
        super().__init__(net, outputs, optimizer_for(net.parameters(), "adam", lr))
