"""Matrix products of a network in fewer bits."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class InBfloat16(nn.Module):
    """A network whose products run in bfloat16, which a processor that knows it does about twice as fast.

    Weights, their gradients and the scores are kept in float32; what goes into a product and comes out of it is rounded
    to 8 bits, as ``torch.autocast`` does it. No method needs to know.

    >>> from bgd.nets import MLP
    >>> net = InBfloat16(MLP(4, 2, (3,)))
    >>> net(torch.ones(5, 4)).dtype, next(net.parameters()).dtype
    (torch.float32, torch.float32)
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        """Scores of a batch, in float32."""
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            scores: Tensor = self.net(x)
        return scores.float()
