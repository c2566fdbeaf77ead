"""Stand-in until the methods branch is merged, which replaces this file: networks by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from torch import nn

from bgd.nets.lenet import LeNet
from bgd.nets.mlp import MLP
from bgd.nets.vgg import VGG, VGG11, VGG16
from bgd.nets.zenke import ZenkeNet
from bgd.plugins import find

NETS: dict[str, Callable[..., nn.Module]] = {
    "mlp": MLP,
    "lenet": LeNet,
    "zenke": ZenkeNet,
    "vgg16": partial(VGG, plan=VGG16),
    "vgg16-bn": partial(VGG, plan=VGG16, batch_norm=True),
    "vgg11": partial(VGG, plan=VGG11),
    "vgg11-bn": partial(VGG, plan=VGG11, batch_norm=True),
}


def build_net(
    name: str,
    inputs: tuple[int, ...],
    outputs: int,
    *,
    init: str,
    seed: int,
    widths: Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> nn.Module:
    """A network by name, or by ``module:function``.

    >>> build_net("mlp", (1, 8, 8), 10, init="xavier", seed=0, widths=(5,)).head.in_features
    5
    """
    build: Callable[..., nn.Module] = find(name, NETS, "net", "bgd.nets")
    if name in NETS:
        return build(inputs, outputs, init=init, seed=seed, **({"widths": widths} if name == "mlp" else {}))
    known = inspect.signature(build).parameters
    given = {"inputs": inputs, "outputs": outputs, "seed": seed}
    return build(**{key: value for key, value in given.items() if key in known}, **(settings or {}))
