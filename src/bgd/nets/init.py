"""Initialisation of the weights of a network, layer by layer and from a generator of its own.

Every rule changes one linear or convolution layer in place. The global generator is never used: building a net in
the middle of a program does not change its other random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

Layer = nn.Linear | nn.Conv2d
NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm)
INITIALISED = (nn.Linear, nn.Conv2d, *NORMS)
"""Layers that :func:`initialise` supports."""


def xavier_(layer: Layer, generator: torch.Generator) -> None:
    r"""Xavier normal weights, as the paper initialises the mean, with biases as in its authors' code.

    .. math:: w \sim N(0, 2 / (n_{in} + n_{out})), \quad
        b \sim N(0, 2 / (1 + n_{out})) \text{ (linear)}, \; N(0, 2 / (1 + 9 n_{out})) \text{ (convolution)}

    where a convolution's :math:`n_{in}` and :math:`n_{out}` count each position of its kernel.

    >>> layer = nn.Linear(300, 100)
    >>> xavier_(layer, torch.Generator().manual_seed(0))
    >>> print(f"{layer.weight.std():.3f}, expected {math.sqrt(2 / 400):.3f}")
    0.071, expected 0.071
    """
    nn.init.xavier_normal_(layer.weight, generator=generator)
    if layer.bias is not None:
        n_out = len(layer.bias)
        variance = 2 / (1 + n_out) if isinstance(layer, nn.Linear) else 2 / (1 + 9 * n_out)
        nn.init.normal_(layer.bias, std=math.sqrt(variance), generator=generator)


def he_(layer: Layer, generator: torch.Generator) -> None:
    r"""He et al.: normal weights of variance :math:`2 / n_{in}`, which keeps a ReLU net's scale; zero biases.

    >>> layer = nn.Conv2d(8, 4, 3)
    >>> he_(layer, torch.Generator().manual_seed(0))
    >>> layer.bias.abs().max().item()
    0.0
    """
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def he_out_(layer: Layer, generator: torch.Generator) -> None:
    r"""He et al.'s rule by a convolution's outputs, variance :math:`2 / n_{out}`; linear layers as :func:`he_`.

    As torch's own VGG was initialised at the time of the paper. Where the number of channels grows, the signal becomes
    smaller layer by layer, and the first scores of a deep network are near 0.

    >>> layer = nn.Conv2d(64, 128, 3)
    >>> he_out_(layer, torch.Generator().manual_seed(0))
    >>> print(f"{layer.weight.std():.3f}, expected {math.sqrt(2 / (9 * 128)):.3f}")
    0.042, expected 0.042
    """
    if isinstance(layer, nn.Linear):
        he_(layer, generator)
        return
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu", generator=generator)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def torch_(layer: Layer, generator: torch.Generator) -> None:
    r"""Torch's own default: weights and biases uniform in :math:`\pm 1 / \sqrt{n_{in}}`.

    Bit for bit what the layer would hold after ``torch.manual_seed(s)``, for a generator with seed s.

    >>> layer = nn.Linear(4, 2)
    >>> torch_(layer, torch.Generator().manual_seed(0))
    >>> bool(layer.weight.abs().max() <= 0.5)
    True
    """
    nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
    if layer.bias is not None:
        bound = 1 / math.sqrt(layer.weight[0].numel())
        nn.init.uniform_(layer.bias, -bound, bound, generator=generator)


def torch_zero_bias_(layer: Layer, generator: torch.Generator) -> None:
    r"""Torch's own default for the weights, uniform in :math:`\pm 1 / \sqrt{n_{in}}`; zero biases.

    As the paper initialises its VGG16 with BatchNorm.

    >>> layer = nn.Linear(4, 2)
    >>> torch_zero_bias_(layer, torch.Generator().manual_seed(0))
    >>> bool(layer.weight.any()), bool(layer.bias.any())
    (True, False)
    """
    torch_(layer, generator)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


INITS: dict[str, Callable[[Layer, torch.Generator], None]] = {
    "xavier": xavier_,
    "torch": torch_,
    "he": he_,
    "he-out": he_out_,
    "torch-zero-bias": torch_zero_bias_,
}


def initialise(net: nn.Module, init: str, seed: int | torch.Generator) -> None:
    """Initialise every linear and convolution layer of a net, in order of their definition.

    Normalisation layers are reset to scale 1, shift 0, and running statistics of mean 0 and variance 1, whatever
    the rule.

    Args:
        net: changed in place; layers of other kinds are left alone.
        init: ``"xavier"``, ``"torch"``, ``"he"``, ``"he-out"`` or ``"torch-zero-bias"``.
        seed: of a generator made for this net, or a generator to use.

    >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> initialise(net, "xavier", seed=1)
    >>> initialise(net, "Xavier", seed=1)
    Traceback (most recent call last):
    ValueError: init='Xavier' is not known: choose one of xavier, torch, he, he-out, torch-zero-bias
    """
    if init not in INITS:
        raise ValueError(f"init={init!r} is not known: choose one of {', '.join(INITS)}")
    generator = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
    for layer in net.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            INITS[init](layer, generator)
        elif isinstance(layer, NORMS):
            layer.reset_parameters()
