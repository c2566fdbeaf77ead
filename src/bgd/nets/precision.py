"""Matrix products of a network in bfloat16."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bgd.nets.init import NORMS


class InBfloat16(nn.Module):
    """A network whose products run in bfloat16, which a processor with support for it computes about twice as fast.

    Weights, their gradients and the scores stay in float32; inputs and results of a product are rounded to 8
    bits, as by ``torch.autocast``. Normalisation layers compute in float32. Methods need no change for it.

    >>> from bgd.nets import MLP
    >>> net = InBfloat16(MLP(4, 2, (3,)))
    >>> net(torch.ones(5, 4)).dtype, next(net.parameters()).dtype
    (torch.float32, torch.float32)
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        for layer in net.modules():
            if isinstance(layer, NORMS):
                layer.register_forward_pre_hook(_to_float32)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of a batch, in float32."""
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            scores: Tensor = self.net(x)
        return scores.float()


def _to_float32(_layer: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(a.float() for a in args)  # vmap has no normalisation of mixed types
