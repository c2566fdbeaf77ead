"""Powers of per-sample gradients, summed over a batch and vectorised.

Everything in this file is a sum over samples b of |J_b^T v_b|^power, where J_b is the Jacobian of the scores of
sample b and v_b a vector over outputs: squares (power 2) with v from a likelihood make Fisher information,
absolute values (power 1) with v = d mean(f^2)/df make MAS. Two algorithms for the same numbers:

- In a net whose parameters all belong to linear and convolution layers, one backward pass gives the gradient g_b at
  each layer's output, beside its input a_b. The gradient of a sample in a linear layer is an outer product, whose
  powers factorise, |g a|^p = |g|^p |a|^p, so the sum over samples is one matrix product (|g|^p)^T |a|^p: about the
  cost of an SGD step, and no per-sample gradient in memory. A convolution sums over positions before the power is
  taken: one batched product of g_b with the patches of a_b.
- In any other net: ``vmap`` of the gradient, over as many samples at once as memory allows.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from bgd.methods.common.base import trainable_parameters
from bgd.methods.common.penalty import Weights
from bgd.methods.curvature.layers import count_uses, dtype_of, is_matrix_product, unfold

CHUNK_NUMBERS = 2**22  # per-sample gradients in memory at once: more of them do not fit the caches of a CPU

Vectors = Callable[[Tensor], Tensor]
"""From the scores (B, outputs), without gradient, to v (K, B, outputs)."""


def sum_gradient_powers(net: nn.Module, x: Tensor, vectors: Vectors, power: int) -> Weights:
    """sum_k sum_b |J_b^T v_kb|^power for each trainable weight, by the fastest algorithm that the net allows.

    Args:
        net: a network whose samples do not influence each other (evaluation mode).
        x: (B, ...).
        vectors: see :data:`Vectors`.
        power: 1 or 2.

    >>> net = nn.Linear(1, 1, bias=False)
    >>> sum_gradient_powers(net, torch.tensor([[1.0], [3.0]]), lambda scores: torch.ones(1, 2, 1), power=2)["weight"]
    tensor([[10.]])
    """
    fast = sum_through_layers(net, x, vectors, power)
    return sum_through_vmap(net, x, vectors, power) if fast is None else fast


def sum_through_layers(net: nn.Module, x: Tensor, vectors: Vectors, power: int) -> Weights | None:
    """``sum_gradient_powers`` from one forward and K backward passes; None where the net's shape rules it out.

    It takes a net whose trainable parameters all belong to ``nn.Linear`` and ``nn.Conv2d`` layers, shared with nothing
    else, each called once, as a module, on (B, features) or (B, C, H, W), with the B samples of x in their order and
    nothing overwritten in place.

    >>> sum_through_layers(nn.Conv1d(1, 1, 1), torch.zeros(1, 1, 4), lambda s: s[None], power=1) is None
    True
    """
    owners = dict.fromkeys(name.rpartition(".")[0] for name in trainable_parameters(net))
    layers = {owner: net.get_submodule(owner) for owner in owners}
    tied = len(dict(net.named_parameters(remove_duplicate=False))) != len(list(net.parameters()))
    if tied or not all(is_matrix_product(layer) for layer in layers.values()):
        return None
    recorded = _record_single_calls(net, x, layers)
    if recorded is None:
        return None
    scores, calls = recorded
    v = vectors(scores.detach())
    inputs = {
        name: _prepare_input(layer, calls[name][0].detach().to(dtype_of(layer)), power)
        for name, layer in layers.items()
    }
    layer_outputs = [out for _, out in calls.values()]
    total: Weights = {}
    for k in range(len(v)):
        at_outputs = torch.autograd.grad(scores, layer_outputs, v[k], retain_graph=k + 1 < len(v), allow_unused=True)
        for (name, layer), g in zip(layers.items(), at_outputs, strict=True):
            g = (torch.zeros_like(calls[name][1]) if g is None else g).to(dtype_of(layer))
            weight, bias = _sum_powers(layer, inputs[name], g, power)
            prefix = f"{name}." if name else ""
            if layer.weight.requires_grad:
                add_to(total, f"{prefix}weight", weight)
            if layer.bias is not None and layer.bias.requires_grad:
                add_to(total, f"{prefix}bias", bias)
    return total


def _record_single_calls(
    net: nn.Module, x: Tensor, layers: dict[str, nn.Module]
) -> tuple[Tensor, dict[str, tuple[Tensor, Tensor]]] | None:
    """The scores, and input and output of each layer; None where a layer's call is not one product of each sample."""
    calls: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in layers}
    versions: list[tuple[Tensor, int]] = []

    def record(name: str, a: Tensor, out: Tensor) -> None:
        calls[name].append((a, out))
        versions.extend((t, t._version) for t in (a, out))

    hooks = [
        layer.register_forward_hook(lambda _m, args, out, name=name: record(name, args[0], out))
        for name, layer in layers.items()
    ]
    try:
        with torch.enable_grad():
            scores = net(x)
    finally:
        for hook in hooks:
            hook.remove()
    reused = any(count > 1 for count in count_uses(scores).values())  # such as in F.linear(h, layer.weight.T)
    overwritten = any(t._version != version for t, version in versions)  # such as by nn.ReLU(inplace=True)
    dimensions = {name: 2 if isinstance(layer, nn.Linear) else 4 for name, layer in layers.items()}
    if (
        reused
        or overwritten
        or any(len(c) != 1 or c[0][0].ndim != dimensions[name] or len(c[0][0]) != len(x) for name, c in calls.items())
    ):
        return None
    return scores, {name: c[0] for name, c in calls.items()}


def _prepare_input(layer: nn.Module, a: Tensor, power: int) -> Tensor:
    """What the sums need of a layer's input: its power, or a convolution's patches (B, C k k, positions)."""
    return unfold(layer, a) if isinstance(layer, nn.Conv2d) else power_of(a, power)


def _sum_powers(layer: nn.Module, a: Tensor, g: Tensor, power: int) -> tuple[Tensor, Tensor]:
    """Over samples, of |gradient|^power: for the layer's weight, and for its bias."""
    if not isinstance(layer, nn.Conv2d):
        g = power_of(g, power)
        return g.T @ a, g.sum(dim=0)
    g = g.flatten(2)
    weight = torch.zeros_like(layer.weight).flatten(1)
    chunk = max(1, CHUNK_NUMBERS // layer.weight.numel())
    for start in range(0, len(g), chunk):
        part = slice(start, start + chunk)
        weight += power_of(g[part] @ a[part].mT, power).sum(dim=0)
    return weight.view_as(layer.weight), power_of(g.sum(dim=2), power).sum(dim=0)


def sum_through_vmap(net: nn.Module, x: Tensor, vectors: Vectors, power: int) -> Weights:
    """``sum_gradient_powers`` for any net that ``torch.func`` can run, in chunks.

    >>> net = nn.Linear(1, 1, bias=False)
    >>> sum_through_vmap(net, torch.tensor([[1.0], [3.0]]), lambda scores: torch.ones(1, 2, 1), power=1)["weight"]
    tensor([[4.]])
    """
    parameters = {name: p.detach() for name, p in trainable_parameters(net).items()}
    with torch.no_grad():
        v = vectors(net(x))

    def projected(parameters: Weights, x: Tensor, v: Tensor) -> Tensor:
        scores: Tensor = functional_call(net, parameters, (x[None],))
        return (scores[0] * v).sum()

    gradients = vmap(grad(projected), in_dims=(None, 0, 0))
    chunk = max(1, CHUNK_NUMBERS // max(1, sum(p.numel() for p in parameters.values())))
    total: Weights = {}
    for k in range(len(v)):
        for start in range(0, len(x), chunk):
            part = slice(start, start + chunk)
            for name, g in gradients(parameters, x[part], v[k, part]).items():
                add_to(total, name, power_of(g, power).sum(dim=0))
    return total


def power_of(t: Tensor, power: int) -> Tensor:
    """|t|^power, for power 1 or 2.

    >>> power_of(torch.tensor([-3.0]), 2)
    tensor([9.])
    """
    return t.square() if power == 2 else t.abs()


def add_to(total: Weights, name: str, value: Tensor) -> None:
    """total[name] += value, out of place, where a missing name counts as 0.

    >>> total = {}
    >>> add_to(total, "w", torch.ones(1)), add_to(total, "w", torch.ones(1)), total["w"]
    (None, None, tensor([2.]))
    """
    total[name] = total[name] + value if name in total else value
