"""The fully connected network of the paper's MNIST experiments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bgd.nets.init import initialise


class MLP(nn.Module):
    """Hidden ReLU layers and one linear output layer, ``head``.

    A shared head has C outputs; one head per task is the same layer with T x C of them (``Heads.outputs``):
    which outputs belong to which task is up to the loss and the prediction. The net itself knows it only for the
    weights at the start (``heads``).

    Args:
        inputs: features of a sample, or its shape such as (1, 32, 32). Batches are flattened.
        outputs: of the last layer.
        widths: of the hidden layers; none at all gives a linear model.
        heads: outputs of each head where tasks have heads of their own: each then starts as a layer of its own.
        init: a key of ``bgd.nets.INITS``; ``"xavier"`` is the paper's.
        seed: of the initialisation's own generator, or that generator. The global one is never touched.

    >>> net = MLP((1, 32, 32), 10, widths=(200, 200), seed=2019)
    >>> net(torch.zeros(7, 1, 32, 32)).shape, net(torch.zeros(7, 1024)).shape
    (torch.Size([7, 10]), torch.Size([7, 10]))
    """

    def __init__(
        self,
        inputs: int | Sequence[int],
        outputs: int,
        widths: Sequence[int] = (200, 200),
        *,
        heads: Sequence[int] = (),
        init: str = "xavier",
        seed: int | torch.Generator = 0,
    ) -> None:
        super().__init__()
        self.inputs = inputs if isinstance(inputs, int) else math.prod(inputs)
        sizes = [self.inputs, *widths, outputs]
        if min(sizes) < 1:
            raise ValueError(f"an MLP needs layers of at least one unit, got sizes {sizes}")
        # made on "meta", since the layers' own default initialisation would use the global generator
        layers = [nn.Linear(*pair, device="meta").to_empty(device="cpu") for pair in itertools.pairwise(sizes)]
        self.hidden = nn.ModuleList(layers[:-1])
        self.head = layers[-1]
        initialise(self, init, seed, heads)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (B, outputs) of a batch (B, C, H, W) or (B, features)."""
        if x.dim() < 2 or math.prod(x.shape[1:]) != self.inputs:
            raise ValueError(
                f"this MLP takes {self.inputs} inputs a sample, got a batch of shape {tuple(x.shape)}: "
                f"give it (B, {self.inputs}) or images of {self.inputs} values, or build it for this shape"
            )
        x = x.flatten(1)
        for layer in self.hidden:
            x = torch.relu(layer(x))
        out: Tensor = self.head(x)
        return out
