"""Networks by name: the package's own, those of installed packages, and functions of one's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from bgd.errors import SettingError, suggest
from bgd.inference import evaluating
from bgd.nets.lenet import LeNet
from bgd.nets.mlp import MLP
from bgd.nets.vgg import VGG, VGG11, VGG16
from bgd.nets.zenke import ZenkeNet
from bgd.plugins import describe, find

GROUP = "bgd.nets"
"""Entry points of installed packages that name a network."""

NETS: dict[str, Callable[..., nn.Module]] = {
    "mlp": MLP,
    "lenet": LeNet,
    "lenet-relu": partial(LeNet, relu=True),
    "zenke": ZenkeNet,
    "vgg16": partial(VGG, plan=VGG16),
    "vgg16-bn": partial(VGG, plan=VGG16, batch_norm=True),
    "vgg11": partial(VGG, plan=VGG11),
    "vgg11-bn": partial(VGG, plan=VGG11, batch_norm=True),
}
"""The package's own networks, by the name that a configuration gives them."""


def build_net(
    name: str,
    inputs: Sequence[int],
    outputs: int,
    *,
    heads: Sequence[int] = (),
    init: str = "xavier",
    seed: int = 0,
    widths: Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> nn.Module:
    """A network by name: built-in, an entry point of ``bgd.nets``, or ``"module:function"``.

    A function (or class) of one's own is called as ``build(inputs=(C, H, W), outputs=n, seed=seed, **settings)``, with
    only the keywords that it takes; ``heads``, ``init`` and ``widths`` are passed where it names them. While it runs,
    torch's global generator is seeded with ``seed``, and restored afterwards, so that a function without ``seed`` gives
    the same weights every time. What it returns must map images (B, C, H, W) to scores (B, n).

    Args:
        name: of the network.
        inputs: shape of an image, (channels, height, width).
        outputs: of the last layer.
        heads: outputs of each task's head, where each is to start as a layer of its own; empty: as one layer.
        init: the initialisation, a key of ``bgd.nets.INITS``.
        seed: of the initialisation.
        widths: of hidden layers, for networks that take them; None for their default.
        settings: further keywords of the network.

    Raises:
        SettingError: for settings or images that the network does not support, or outputs of another width.
        PluginError: for an unknown name.

    >>> build_net("mlp", (1, 8, 8), 10, widths=(20,)).head
    Linear(in_features=20, out_features=10, bias=True)
    >>> build_net("vgg16", (1, 8, 8), 10)
    Traceback (most recent call last):
    bgd.errors.SettingError: net 'vgg16': images of shape (1, 8, 8) are too small for a VGG: pad them, or use ...
    >>> build_net("torch.nn:Identity", (1, 2, 2), 10)
    Traceback (most recent call last):
    bgd.errors.SettingError: net 'torch.nn:Identity': a batch of shape (2, 1, 2, 2) gave scores of shape \
(2, 1, 2, 2), but (2, 10) is needed: return a network with outputs=10
    """
    build = find(name, NETS, "net", GROUP)
    if isinstance(build, nn.Module) or not callable(build):
        raise SettingError(
            f"net {name!r} is a {type(build).__name__}: name a function or class that takes inputs and outputs and "
            "returns a network"
        )
    offered = {"inputs": tuple(inputs), "outputs": outputs, "seed": seed, "heads": tuple(heads), "init": init}
    if widths is not None:
        offered["widths"] = tuple(widths)
    keywords = _select_keywords(name, build, offered, dict(settings or {}))
    if name not in NETS:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return _build_foreign(name, build, keywords, tuple(inputs), outputs)
    try:
        net = build(**keywords)
    except ValueError as error:
        raise SettingError(f"net {name!r}: {error}") from error
    # the layout in which a CPU convolves faster, by a tenth or more; the numbers mean the same
    return net.to(memory_format=torch.channels_last)  # type: ignore[no-any-return,call-overload]


def _select_keywords(
    name: str, build: Callable[..., Any], offered: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Any]:
    """The keywords of a call: of those offered, what the function takes; and all settings, which it must take."""
    try:
        parameters = inspect.signature(build).parameters.values()
    except (TypeError, ValueError) as error:  # a function written in C
        raise SettingError(
            f"net {name!r}: its arguments are unknown ({error}); wrap it in a Python function"
        ) from error
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for setting in settings:
        if setting not in named and not takes_any:
            known = [n for n in named if n not in ("inputs", "outputs", "seed")]
            hint = suggest(setting, known) if known else "it has none"
            raise SettingError(f"net {name!r} has no setting {setting!r}: {hint}")
    always = ("inputs", "outputs", "seed") if takes_any else ()
    return {key: value for key, value in offered.items() if key in named or key in always} | settings


def _build_foreign(
    name: str, build: Callable[..., Any], keywords: dict[str, Any], inputs: tuple[int, ...], outputs: int
) -> nn.Module:
    """A network of the user's own, checked on a batch of two images; its errors are reported with its name."""
    shape = (2, *inputs)
    try:
        net = build(**keywords)
    except Exception as error:
        raise SettingError(f"net {name!r}: {type(error).__name__}: {describe(error)}") from error
    if not isinstance(net, nn.Module):
        raise SettingError(f"net {name!r} returned a {type(net).__name__}: return a torch.nn.Module")
    try:
        with torch.no_grad(), evaluating(net):
            scores = net(torch.zeros(shape))
    except Exception as error:
        raise SettingError(
            f"net {name!r} fails on a batch of shape {shape}: {type(error).__name__}: {describe(error)}"
        ) from error
    found = tuple(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
    if found != (2, outputs):
        raise SettingError(
            f"net {name!r}: a batch of shape {shape} gave scores of shape {found}, but {(2, outputs)} is needed: "
            f"return a network with outputs={outputs}"
        )
    return net
