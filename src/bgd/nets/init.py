"""Initialisation of the weights of a network, layer by layer and from a generator of its own.

Every rule changes one linear or convolution layer in place. The global generator is never used: building a net in
the middle of a program does not change its other random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

Layer = nn.Linear | nn.Conv2d
Rule = Callable[[Layer, torch.Generator, Sequence[int]], None]
NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm)
INITIALISED = (nn.Linear, nn.Conv2d, *NORMS)
"""Layers that :func:`initialise` supports."""


@torch.no_grad()
def xavier_weights_(layer: Layer, generator: torch.Generator, heads: Sequence[int] = ()) -> None:
    r"""Glorot and Bengio's normal weights, :math:`w \sim N(0, 2 / (n_{in} + n_{out}))`, whatever the biases.

    >>> layer = nn.Linear(300, 100)
    >>> xavier_weights_(layer, torch.Generator().manual_seed(0))
    >>> print(f"{layer.weight.std():.3f}, expected {math.sqrt(2 / 400):.3f}")
    0.071, expected 0.071
    """
    if not heads:
        nn.init.xavier_normal_(layer.weight, generator=generator)
        return
    variance = 2 / (layer.weight[0].numel() + _outputs_of_own_head(heads))
    nn.init.normal_(layer.weight, generator=generator).mul_(variance.sqrt()[:, None])


def torch_weights_(layer: Layer, generator: torch.Generator, heads: Sequence[int] = ()) -> None:  # noqa: ARG001
    r"""Torch's own default for weights, uniform in :math:`\pm 1 / \sqrt{n_{in}}`."""
    nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)


@torch.no_grad()
def normal_bias_(layer: Layer, generator: torch.Generator, heads: Sequence[int] = ()) -> None:
    r"""Normal biases as in the paper's authors' code.

    .. math:: b \sim N(0, 2 / (1 + n_{out})) \text{ (linear)}, \; N(0, 2 / (1 + 9 n_{out})) \text{ (convolution)}
    """
    if layer.bias is None:
        return
    if heads:
        nn.init.normal_(layer.bias, generator=generator).mul_((2 / (1 + _outputs_of_own_head(heads))).sqrt())
        return
    positions = 1 if isinstance(layer, nn.Linear) else 9
    nn.init.normal_(layer.bias, std=math.sqrt(2 / (1 + positions * len(layer.bias))), generator=generator)


def torch_bias_(layer: Layer, generator: torch.Generator, heads: Sequence[int] = ()) -> None:  # noqa: ARG001
    r"""Torch's own default for biases, uniform in :math:`\pm 1 / \sqrt{n_{in}}`."""
    if layer.bias is not None:
        bound = 1 / math.sqrt(layer.weight[0].numel())
        nn.init.uniform_(layer.bias, -bound, bound, generator=generator)


def zero_bias_(layer: Layer, generator: torch.Generator, heads: Sequence[int] = ()) -> None:  # noqa: ARG001
    """Biases of 0."""
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def xavier_(layer: Layer, generator: torch.Generator, heads: Sequence[int] = ()) -> None:
    r"""Xavier normal weights, as the paper initialises the mean, with biases as in its authors' code.

    .. math:: w \sim N(0, 2 / (n_{in} + n_{out})), \quad
        b \sim N(0, 2 / (1 + n_{out})) \text{ (linear)}, \; N(0, 2 / (1 + 9 n_{out})) \text{ (convolution)}

    where a convolution's :math:`n_{in}` and :math:`n_{out}` count each position of its kernel, and :math:`n_{out}` of
    an output layer of several heads is that of each head.

    >>> five_heads = nn.Linear(300, 1000)
    >>> xavier_(five_heads, torch.Generator().manual_seed(0), heads=(200,) * 5)
    >>> print(f"{five_heads.weight.std():.3f}, expected {math.sqrt(2 / 500):.3f}")
    0.063, expected 0.063
    """
    xavier_weights_(layer, generator, heads)
    normal_bias_(layer, generator, heads)


def he_(layer: Layer, generator: torch.Generator, heads: Sequence[int] = ()) -> None:
    r"""He et al.: normal weights of variance :math:`2 / n_{in}`, which keeps a ReLU net's scale; zero biases.

    >>> layer = nn.Conv2d(8, 4, 3)
    >>> he_(layer, torch.Generator().manual_seed(0))
    >>> layer.bias.abs().max().item()
    0.0
    """
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
    zero_bias_(layer, generator, heads)


def he_out_(layer: Layer, generator: torch.Generator, heads: Sequence[int] = ()) -> None:
    r"""He et al.'s rule by a convolution's outputs, variance :math:`2 / n_{out}`; linear layers as :func:`he_`.

    As torch's own VGG was initialised at the time of the paper. Where the number of channels grows, the signal becomes
    smaller layer by layer, and the first scores of a deep network are near 0.

    >>> layer = nn.Conv2d(64, 128, 3)
    >>> he_out_(layer, torch.Generator().manual_seed(0))
    >>> print(f"{layer.weight.std():.3f}, expected {math.sqrt(2 / (9 * 128)):.3f}")
    0.042, expected 0.042
    """
    if isinstance(layer, nn.Linear):
        he_(layer, generator, heads)
        return
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu", generator=generator)
    zero_bias_(layer, generator, heads)


def torch_(layer: Layer, generator: torch.Generator, heads: Sequence[int] = ()) -> None:
    r"""Torch's own default: weights and biases uniform in :math:`\pm 1 / \sqrt{n_{in}}`.

    Bit for bit what the layer would hold after ``torch.manual_seed(s)``, for a generator with seed s.

    >>> layer = nn.Linear(4, 2)
    >>> torch_(layer, torch.Generator().manual_seed(0))
    >>> bool(layer.weight.abs().max() <= 0.5)
    True
    """
    torch_weights_(layer, generator, heads)
    torch_bias_(layer, generator, heads)


def pair(weights: Rule, biases: Rule) -> Rule:
    """A rule for a layer from one for its weights and one for its biases.

    >>> layer = nn.Linear(4, 2)
    >>> pair(xavier_weights_, zero_bias_)(layer, torch.Generator().manual_seed(0), ())
    >>> bool(layer.weight.any()), bool(layer.bias.any())
    (True, False)
    """

    def rule(layer: Layer, generator: torch.Generator, heads: Sequence[int] = ()) -> None:
        weights(layer, generator, heads)
        biases(layer, generator, heads)

    return rule


INITS: dict[str, Rule] = {
    "xavier": xavier_,
    "xavier-zero-bias": pair(xavier_weights_, zero_bias_),
    "xavier-torch-bias": pair(xavier_weights_, torch_bias_),
    "torch": torch_,
    "torch-zero-bias": pair(torch_weights_, zero_bias_),
    "torch-normal-bias": pair(torch_weights_, normal_bias_),
    "he": he_,
    "he-out": he_out_,
}
"""By name: Xavier's weights with the biases of the paper's authors' code, with zeros, with torch's; torch's weights
with its own biases, with zeros (the paper's VGG16 with BatchNorm), with those of that code; He et al.'s by inputs, by
outputs."""


def initialise(net: nn.Module, init: str, seed: int | torch.Generator, heads: Sequence[int] = ()) -> None:
    """Initialise every linear and convolution layer of a net, in order of their definition.

    Normalisation layers are reset to scale 1, shift 0, and running statistics of mean 0 and variance 1, whatever
    the rule.

    Args:
        net: changed in place; layers of other kinds are left alone.
        init: a key of ``INITS``.
        seed: of a generator made for this net, or a generator to use.
        heads: outputs of each head of the layer ``net.head``, where each starts as a layer of its own would.

    >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> initialise(net, "xavier", seed=1)
    >>> initialise(net, "Xavier", seed=1)
    Traceback (most recent call last):
    ValueError: init='Xavier' is not known: choose one of xavier, xavier-zero-bias, xavier-torch-bias, torch, ...
    """
    if init not in INITS:
        raise ValueError(f"init={init!r} is not known: choose one of {', '.join(INITS)}")
    head = net.get_submodule("head") if heads else None
    if isinstance(head, nn.Linear) and sum(heads) != head.out_features:
        raise ValueError(f"heads={tuple(heads)} have {sum(heads)} outputs, but the net has {head.out_features}")
    generator = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
    for layer in net.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            INITS[init](layer, generator, heads if layer is head else ())
        elif isinstance(layer, NORMS):
            layer.reset_parameters()


def _outputs_of_own_head(heads: Sequence[int]) -> torch.Tensor:
    """For each output the number of outputs of its head."""
    sizes = torch.tensor(heads)
    return sizes.repeat_interleave(sizes)
