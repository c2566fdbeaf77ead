"""The layers of a network that curvature is computed for, and their parameters as matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgd.methods.common.types import MethodError


def is_matrix_product(layer: nn.Module) -> bool:
    """Whether a layer is one matrix product: linear, or a convolution whose patches ``F.unfold`` can make.

    >>> is_matrix_product(nn.Conv2d(2, 4, 3)), is_matrix_product(nn.Conv2d(2, 4, 3, groups=2))
    (True, False)
    """
    if list(layer._parameters) != ["weight", "bias"]:  # as nn.utils.spectral_norm leaves them
        return False
    if type(layer) is nn.Conv2d:
        return layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return type(layer) is nn.Linear


def find_layers(net: nn.Module) -> dict[str, nn.Module]:
    """The trainable layers, by name; an error where a parameter belongs to a layer without a block.

    ``nn.Linear`` and ``nn.Conv2d`` (no groups, padding by zeros) get Kronecker factors; ``nn.BatchNorm1d`` and
    ``nn.BatchNorm2d`` a diagonal.

    >>> list(find_layers(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(2, 2))))
    ['0', '1', '3']
    >>> find_layers(nn.Sequential(nn.LayerNorm(4)))
    Traceback (most recent call last):
    bgd.methods.common.types.MethodError: no Kronecker factors for '0.weight' of LayerNorm: use Linear, \
Conv2d (groups=1, padding in numbers, with zeros), BatchNorm1d or BatchNorm2d, or freeze it with requires_grad_(False)
    """
    if len(dict(net.named_parameters(remove_duplicate=False))) != len(list(net.parameters())):
        raise MethodError("no Kronecker factors for a network whose layers share a parameter: give each its own")
    layers: dict[str, nn.Module] = {}
    for name, p in net.named_parameters():
        owner = name.rpartition(".")[0]
        layer = net.get_submodule(owner)
        if not p.requires_grad:
            continue
        if not (is_matrix_product(layer) or type(layer) in (nn.BatchNorm1d, nn.BatchNorm2d)):
            raise MethodError(
                f"no Kronecker factors for {name!r} of {type(layer).__name__}: use Linear, Conv2d (groups=1, "
                "padding in numbers, with zeros), BatchNorm1d or BatchNorm2d, or freeze it with requires_grad_(False)"
            )
        if not all(q.requires_grad for q in layer.parameters(recurse=False)):
            raise MethodError(f"{owner!r} trains {name!r} but not all of its parameters: freeze all of them or none")
        layers[owner] = layer
    return layers


def join_columns(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors of the same length side by side, as one matrix: such as a weight (out, ...) and a bias (out,).

    >>> join_columns([torch.zeros(2, 3, 5), torch.ones(2)]).shape
    torch.Size([2, 16])
    """
    return torch.cat([t.reshape(len(t) if t.ndim else 1, -1) for t in tensors], dim=1)


def split_columns(matrix: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """The inverse of :func:`join_columns`, in the shapes of ``like``.

    >>> [t.shape for t in split_columns(torch.zeros(2, 16), [torch.zeros(2, 3, 5), torch.ones(2)])]
    [torch.Size([2, 3, 5]), torch.Size([2])]
    """
    parts = torch.split(matrix, [t.numel() // len(matrix) for t in like], dim=1)
    return [p.reshape(t.shape) for p, t in zip(parts, like, strict=True)]


def to_matrix(layer: nn.Module, of: Callable[[nn.Parameter], Tensor] = lambda p: p.detach()) -> Tensor:
    """A layer's parameters as one matrix (out, in + 1), the bias last; or ``of`` each, such as its gradient.

    >>> layer = nn.Linear(3, 2)
    >>> to_matrix(layer).shape, to_matrix(layer, torch.zeros_like).sum()
    (torch.Size([2, 4]), tensor(0.))
    """
    return join_columns([of(p) for p in layer.parameters(recurse=False)])


def from_matrix(layer: nn.Module, matrix: Tensor) -> list[Tensor]:
    """The inverse of :func:`to_matrix`: one tensor for each of ``layer.parameters()``, in its shape.

    >>> layer = nn.Conv2d(2, 4, 3)
    >>> [t.shape for t in from_matrix(layer, to_matrix(layer))]
    [torch.Size([4, 2, 3, 3]), torch.Size([4])]
    """
    return split_columns(matrix, list(layer.parameters(recurse=False)))


def count_uses(scores: Tensor) -> Counter[Tensor]:
    """How often each trainable tensor enters the scores.

    >>> layer = nn.Linear(2, 2)
    >>> found = count_uses(nn.functional.linear(layer(torch.ones(1, 2)), layer.weight))
    >>> found[layer.weight], found[layer.bias]
    (2, 1)
    """
    found: Counter[Tensor] = Counter()
    pending, seen = [scores.grad_fn], {scores.grad_fn}
    while pending:
        node = pending.pop()
        for previous, _ in node.next_functions if node is not None else ():
            weight = getattr(previous, "variable", None)  # of a node where gradients are accumulated
            if weight is not None:
                found[weight] += 1
            elif previous not in seen:
                seen.add(previous)
                pending.append(previous)
    return found


def dtype_of(layer: nn.Module) -> torch.dtype:
    """The dtype of a layer's weights, for sums over its activations: under autocast those have fewer bits.

    >>> dtype_of(nn.Linear(2, 3))
    torch.float32
    """
    return next(layer.parameters(recurse=False)).dtype


def unfold(layer: nn.Conv2d, a: Tensor) -> Tensor:
    """The patches of a convolution's input, (B, channels x kernel, positions): the layer is a product with each.

    >>> unfold(nn.Conv2d(2, 4, 3), torch.zeros(5, 2, 8, 8)).shape
    torch.Size([5, 18, 36])
    """
    assert not isinstance(layer.padding, str)
    return F.unfold(a, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
