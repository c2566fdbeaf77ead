"""The network of the CIFAR10/CIFAR100 experiment, which is that of Zenke et al. (2017)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from bgd.nets.convnet import ConvNet, channels_of, conv


class ZenkeNet(ConvNet):
    """Convolutions of 3 x 3, 32-32-M-64-64-M, and a hidden layer of 512, with dropout after each pooling and it.

    The first convolution of each pair pads by 1, the second does not: 32 x 32 images give 64 x 6 x 6 features.

    Args:
        inputs: shape of an image, (channels, height, width).
        outputs: of the last layer, for all tasks together.
        dropout: after each pooling, and after the hidden layer; in training only.
        heads: outputs of each head where tasks have heads of their own: each then starts as a layer of its own.
        init: a key of ``bgd.nets.INITS``; ``"xavier"`` is the paper's.
        seed: of the initialisation's own generator, or that generator.

    >>> net = ZenkeNet((3, 32, 32), outputs=6 * 10).eval()
    >>> net(torch.zeros(7, 3, 32, 32)).shape, net.hidden[0].in_features
    (torch.Size([7, 60]), 2304)
    """

    def __init__(
        self,
        inputs: Sequence[int] = (3, 32, 32),
        outputs: int = 10,
        *,
        dropout: tuple[float, float] = (0.25, 0.5),
        heads: Sequence[int] = (),
        init: str = "xavier",
        seed: int | torch.Generator = 0,
    ) -> None:
        features = [
            *(conv(channels_of(inputs), 32, 3, padding=1), nn.ReLU(), conv(32, 32, 3), nn.ReLU()),
            *(nn.MaxPool2d(2), nn.Dropout(dropout[0])),
            *(conv(32, 64, 3, padding=1), nn.ReLU(), conv(64, 64, 3), nn.ReLU()),
            *(nn.MaxPool2d(2), nn.Dropout(dropout[0])),
        ]
        super().__init__(
            inputs, outputs, features, widths=(512,), dropout=dropout[1], heads=heads, init=init, seed=seed
        )
