"""The networks of the CIFAR10 classification experiments: VGG, small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from torch import nn

from bgd.nets.convnet import ConvNet, channels_of, conv

Plan = Sequence[int | Literal["M"]]
"""Filters of each convolution, and "M" for a max-pooling."""

VGG16: Plan = (32, 32, "M", 64, 64, "M", 128, 128, 128, "M", 256, 256, 256, "M", 256, 256, 256, "M")
"""As Zhang et al. (2018) and the paper shrink it for CIFAR10."""

VGG11: Plan = (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M")


class VGG(ConvNet):
    """Convolutions of 3 x 3 padded by 1, poolings that halve the image, and the output layer without hidden ones.

    Args:
        inputs: shape of an image, (channels, height, width).
        outputs: of the last layer.
        plan: ``VGG16``, ``VGG11`` or any other.
        batch_norm: normalise after each convolution, which then has no bias: the shift of the norm replaces it.
        heads: outputs of each head where tasks have heads of their own: each then starts as a layer of its own.
        init: ``"he"`` or ``"he-out"`` (He's rule is the paper's without BatchNorm; which form is not stated),
            ``"torch-zero-bias"`` (the paper's with BatchNorm), ``"xavier"`` or ``"torch"``.
        seed: of the initialisation's own generator, or that generator.

    >>> net = VGG((3, 32, 32), 10, VGG16, batch_norm=True)
    >>> net(torch.zeros(7, 3, 32, 32)).shape, net.head
    (torch.Size([7, 10]), Linear(in_features=256, out_features=10, bias=True))
    """

    def __init__(
        self,
        inputs: Sequence[int] = (3, 32, 32),
        outputs: int = 10,
        plan: Plan = VGG16,
        *,
        batch_norm: bool = False,
        heads: Sequence[int] = (),
        init: str = "he",
        seed: int | torch.Generator = 0,
    ) -> None:
        super().__init__(
            inputs, outputs, _layers(channels_of(inputs), plan, batch_norm), heads=heads, init=init, seed=seed
        )


def _layers(channels: int, plan: Plan, batch_norm: bool) -> Iterator[nn.Module]:
    for step in plan:
        if step == "M":
            yield nn.MaxPool2d(2)
            continue
        yield conv(channels, step, 3, padding=1, bias=not batch_norm)
        if batch_norm:
            yield nn.BatchNorm2d(step, device="meta")
        yield nn.ReLU()
        channels = step
