"""What the convolutional networks have in common: images in, features, perhaps a hidden layer, one output layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from bgd.nets.init import INITIALISED, initialise


class ConvNet(nn.Module):
    """Convolutions (``features``), fully connected ReLU layers (``hidden``) and one linear output layer (``head``).

    A shared head has C outputs; one head per task is the same layer with T x C of them (``Heads.outputs``), as in
    the MLP.

    Args:
        inputs: shape of an image, (channels, height, width).
        outputs: of the last layer.
        features: layers that keep the batch first; made on the device "meta", where nothing is initialised (``conv``).
        widths: of the hidden layers; none by default.
        dropout: the share of each hidden layer's units that is dropped in training.
        heads: outputs of each head where tasks have heads of their own: each then starts as a layer of its own.
        init: a key of ``bgd.nets.INITS``.
        relu: whether the hidden layers have one.
        seed: of the initialisation's own generator, or that generator. The global one is never touched.

    >>> net = ConvNet((1, 8, 8), 10, [conv(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2)], widths=(20,))
    >>> net(torch.zeros(7, 1, 8, 8)).shape, net.hidden[0].in_features
    (torch.Size([7, 10]), 36)
    >>> net(torch.zeros(7, 64))
    Traceback (most recent call last):
    ValueError: this ConvNet takes images of shape (1, 8, 8), got a batch of shape (7, 64): give it (B, 1, 8, 8), ...
    """

    def __init__(
        self,
        inputs: Sequence[int],
        outputs: int,
        features: Iterable[nn.Module],
        widths: Sequence[int] = (),
        dropout: float = 0.0,
        *,
        heads: Sequence[int] = (),
        init: str = "xavier",
        relu: bool = True,
        seed: int | torch.Generator = 0,
    ) -> None:
        super().__init__()
        if outputs < 1:
            raise ValueError(f"a {type(self).__name__} needs at least one output, got {outputs}")
        self.inputs = tuple(inputs)
        self.features = nn.Sequential(*features)
        size = self._size_of_features()
        hidden: list[nn.Module] = []
        for width in widths:
            hidden += [
                nn.Linear(size, width, device="meta"),
                *[nn.ReLU()] * relu,
                *[nn.Dropout(dropout)] * (dropout > 0),
            ]
            size = width
        self.hidden = nn.Sequential(*hidden)
        self.head = nn.Linear(size, outputs, device="meta")
        for layer in self.modules():
            if list(layer.parameters(recurse=False)) and not isinstance(layer, INITIALISED):
                raise ValueError(
                    f"a {type(self).__name__} initialises linear, convolutional and normalisation layers, and no "
                    f"{type(layer).__name__}: build your own nn.Module with it"
                )
        self.to_empty(device="cpu")
        initialise(self, init, seed, heads)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (B, outputs) of a batch of images (B, C, H, W)."""
        if tuple(x.shape[1:]) != self.inputs:
            raise ValueError(
                f"this {type(self).__name__} takes images of shape {self.inputs}, got a batch of shape "
                f"{tuple(x.shape)}: give it (B, {', '.join(map(str, self.inputs))}), or build it for this shape"
            )
        out: Tensor = self.head(self.hidden(self.features(x).flatten(1)))
        return out

    def _size_of_features(self) -> int:
        """Of one image, by a pass on the device "meta"."""
        channels_of(self.inputs)
        try:
            return math.prod(self.features(torch.empty(2, *self.inputs, device="meta")).shape[1:])
        except RuntimeError as error:
            if any(p.device.type != "meta" for p in self.features.parameters()):
                raise ValueError(
                    'make the layers of features on the device "meta": device="meta", or conv()'
                ) from error
            raise ValueError(
                f"images of shape {self.inputs} are too small for a {type(self).__name__}: pad them, or use another net"
            ) from error


def channels_of(inputs: Sequence[int]) -> int:
    """The number of channels of an image's shape.

    >>> channels_of((3, 32, 32))
    3
    >>> channels_of(())
    Traceback (most recent call last):
    ValueError: a convolutional network takes images (channels, height, width), got inputs=()
    """
    if len(inputs) != 3 or min(inputs) < 1:
        raise ValueError(f"a convolutional network takes images (channels, height, width), got inputs={tuple(inputs)}")
    return inputs[0]


def conv(channels: int, filters: int, kernel: int, padding: int = 0, *, bias: bool = True) -> nn.Conv2d:
    """A convolution whose weights are still to be initialised: its default would use the global generator.

    >>> conv(3, 20, 5).weight.device.type
    'meta'
    """
    return nn.Conv2d(channels, filters, kernel, padding=padding, bias=bias, device="meta")
