"""The network of the vision mix."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from bgd.nets.convnet import ConvNet, channels_of, conv


class LeNet(ConvNet):
    """LeNet-like, 20-50-500: two convolutions of 5 x 5, each with ReLU and max-pooling, and a hidden layer of 500.

    As in the paper's authors' code, convolutions pad by 1, so that 32 x 32 images give 50 x 6 x 6 features, and the
    hidden layer is linear: with it the output layer has a factor of rank 500, and no ReLU in between.

    Args:
        inputs: shape of an image, (channels, height, width).
        outputs: of the last layer, for all tasks together.
        heads: outputs of each head where tasks have heads of their own: each then starts as a layer of its own.
        init: a key of ``bgd.nets.INITS``; ``"xavier"`` is the paper's.
        relu: give the hidden layer a ReLU, as LeNet has it.
        seed: of the initialisation's own generator, or that generator.

    >>> net = LeNet((3, 32, 32), outputs=5 * 10)
    >>> net(torch.zeros(7, 3, 32, 32)).shape, net.hidden[0].in_features
    (torch.Size([7, 50]), 1800)
    """

    def __init__(
        self,
        inputs: Sequence[int] = (3, 32, 32),
        outputs: int = 10,
        *,
        heads: Sequence[int] = (),
        init: str = "xavier",
        relu: bool = False,
        seed: int | torch.Generator = 0,
    ) -> None:
        features = [
            *(conv(channels_of(inputs), 20, 5, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(conv(20, 50, 5, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        ]
        super().__init__(inputs, outputs, features, widths=(500,), heads=heads, init=init, relu=relu, seed=seed)
