"""Features of a network: what its last linear layer is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from bgd.exact.features.base import Features
from bgd.exact.head import ExactError
from bgd.inference import evaluating
from bgd.validation import check_choice


def penultimate(net: nn.Module, x: Tensor) -> Tensor:
    """The inputs (B, D) of the last linear layer of ``net``: its learned features.

    >>> penultimate(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), torch.zeros(5, 2)).shape
    torch.Size([5, 3])
    """
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise ExactError(f"{type(net).__name__} has no linear layer, whose inputs could be its features")
    found: list[Tensor] = []
    hook = layers[-1].register_forward_pre_hook(lambda _, given: found.append(given[0]))
    try:
        net(x)
    finally:
        hook.remove()
    return found[-1].flatten(1)


class Network(Features):
    """phi(x) = net(x), or what its last linear layer is given: any module, which the head never trains.

    Args:
        net: any module; used in evaluation mode, without gradients.
        shape: of one input.
        layer: "output" or "penultimate".

    >>> Network(nn.Linear(3, 7), (3,)).dim
    8
    """

    def __init__(
        self, net: nn.Module, shape: Sequence[int], layer: Literal["output", "penultimate"] = "output"
    ) -> None:
        super().__init__()
        check_choice("layer", layer, ("output", "penultimate"))
        self.net, self.layer = net, layer
        parameter = next(net.parameters(), torch.zeros(()))
        example = torch.zeros(2, *shape, dtype=parameter.dtype, device=parameter.device)
        with evaluating(self):
            self.dim = self.transform(example).shape[1] + 1

    def transform(self, x: Tensor) -> Tensor:
        """The outputs, or the inputs of the last linear layer."""
        with torch.no_grad():
            phi: Tensor = self.net(x).flatten(1) if self.layer == "output" else penultimate(self.net, x)
        return phi
