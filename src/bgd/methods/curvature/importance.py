"""How much each weight mattered to some data: per-sample gradients, vectorised.

Everything here is a sum over samples b of |J_b^T v_b|^power, where J_b is the Jacobian of the scores of
sample b and v_b a vector over outputs: squares (power 2) with v from a likelihood make Fisher information,
absolute values (power 1) with v = d mean(f^2)/df make MAS. Two ways to the same numbers:

- In a net whose parameters all sit in linear and convolution layers, one backward pass gives the gradient g_b at
  each layer's output, beside its input a_b. The gradient of a sample in a linear layer is an outer product, whose
  powers factorise, |g a|^p = |g|^p |a|^p, so the sum over samples is one matrix product (|g|^p)^T |a|^p: about the
  cost of an SGD step, and no per-sample gradient in memory. A convolution sums over places before the power is
  taken: one batched product of g_b with the patches of a_b.
- In any other net: ``vmap`` of the gradient, over as many samples at once as memory allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from bgd.inference import evaluating
from bgd.methods.common.base import trainable
from bgd.methods.common.likelihoods import Label
from bgd.methods.common.outputs import Outputs, masked
from bgd.methods.common.penalty import Weights
from bgd.methods.common.types import MethodError
from bgd.scenarios.types import Batch
from bgd.validation import check_choice

ImportanceOver = Literal["sample", "batch"]
"""Whether gradients are squared (or made absolute) per sample, or after their mean over a mini-batch was
taken. The second depends on the batch size; Hsu et al. used it for MAS, and for EWC on Permuted domain."""

CHUNK_NUMBERS = 2**22  # per-sample gradients held at once: more of them do not fit the caches of a CPU


def check_over(over: str, label: str | None = None) -> None:
    """Refuse a way to take gradients together that does not exist, or does not go with the label.

    >>> check_over("batches")
    Traceback (most recent call last):
    bgd.errors.SettingError: over='batches': choose one of sample, batch
    """
    check_choice("over", over, get_args(ImportanceOver))
    if over == "batch" and label == "exact":
        raise MethodError("label='exact' is an expectation per sample: use over='sample', or another label")


def fisher(
    net: nn.Module,
    outputs: Outputs,
    batches: Iterable[Batch],
    label: Label = "predicted",
    over: ImportanceOver = "sample",
    generator: torch.Generator | None = None,
) -> Weights:
    """Diagonal Fisher information, F_i = mean_b E_y[(d log p(y | x_b) / d theta_i)^2].

    With ``over="batch"``, as Hsu et al.: the mean over batches of (batch size) x (gradient of the batch's
    mean loss)^2.

    Args:
        net: the network, taken in evaluation mode.
        outputs: which outputs compete, and their likelihood.
        batches: the data; the result does not depend on how it is cut (``over="sample"``).
        label: which labels y to average over.
        over: see :data:`ImportanceOver`.
        generator: for ``label="sampled"``.

    >>> from bgd.scenarios.heads import Heads
    >>> net, outputs = nn.Linear(1, 2, bias=False), Outputs(Heads(2, ((0, 1),)))
    >>> _ = nn.init.zeros_(net.weight)
    >>> data = [Batch(torch.tensor([[2.0]]), torch.tensor([0]))]
    >>> fisher(net, outputs, data)["weight"]      # (p - e_y)^2 x^2 = 0.5^2 2^2
    tensor([[1.],
            [1.]])
    """
    check_over(over, label)

    def vectors(scores: Tensor, batch: Batch) -> Tensor:
        scores = masked(scores, outputs.consolidation_mask(batch.task))
        return outputs.likelihood.score_gradients(scores, batch.y, label, generator)

    return _average(net, batches, vectors, 2, over)


def sensitivity(net: nn.Module, outputs: Outputs, batches: Iterable[Batch], over: ImportanceOver = "sample") -> Weights:
    """MAS importance, Omega_i = mean_b |d mean_o(f_o(x_b)^2) / d theta_i|: labels play no part.

    The mean runs over the outputs of the loss (the task's head, the labels seen). With ``over="batch"``, as
    Hsu et al.: the mean over batches of |gradient of the batch's mean|.

    >>> from bgd.scenarios.heads import Heads
    >>> net, outputs = nn.Linear(1, 1, bias=False), Outputs(Heads(1, ((0,),)))
    >>> _ = nn.init.constant_(net.weight, -3.0)
    >>> data = [Batch(torch.tensor([[2.0]]), torch.tensor([0]))]
    >>> sensitivity(net, outputs, data)["weight"]      # |2 w| x^2
    tensor([[24.]])
    """
    check_over(over)

    def vectors(scores: Tensor, batch: Batch) -> Tensor:
        mask = outputs.consolidation_mask(batch.task)
        weight = torch.ones_like(scores) if mask is None else mask.to(scores.dtype).expand_as(scores)
        return (2 * scores * weight / weight.sum(dim=1, keepdim=True).clamp(min=1))[None]

    return _average(net, batches, vectors, 1, over)


def per_sample(net: nn.Module, x: Tensor, vectors: Callable[[Tensor], Tensor], power: int) -> Weights:
    """sum_k sum_b |J_b^T v_kb|^power for each trainable weight, by the fastest way that the net allows.

    Args:
        net: a network whose samples do not influence each other (evaluation mode).
        x: (B, ...).
        vectors: from the scores (B, outputs), without gradient, to v (K, B, outputs).
        power: 1 or 2.

    >>> net = nn.Linear(1, 1, bias=False)
    >>> per_sample(net, torch.tensor([[1.0], [3.0]]), lambda scores: torch.ones(1, 2, 1), power=2)["weight"]
    tensor([[10.]])
    """
    fast = through_layers(net, x, vectors, power)
    return through_vmap(net, x, vectors, power) if fast is None else fast


def through_layers(net: nn.Module, x: Tensor, vectors: Callable[[Tensor], Tensor], power: int) -> Weights | None:
    """``per_sample`` from one forward and K backward passes; None where the net's shape rules it out.

    It takes a net whose trainable parameters all belong to ``nn.Linear`` and ``nn.Conv2d`` layers, shared with nothing
    else, each called once, as a module, on (B, features) or (B, C, H, W), with the B samples of x in their order and
    nothing overwritten in place.

    >>> through_layers(nn.Conv1d(1, 1, 1), torch.zeros(1, 1, 4), lambda s: s[None], power=1) is None
    True
    """
    owners = dict.fromkeys(name.rpartition(".")[0] for name in trainable(net))
    layers = {owner: net.get_submodule(owner) for owner in owners}
    tied = len(dict(net.named_parameters(remove_duplicate=False))) != len(list(net.parameters()))
    if tied or not all(has_patches(layer) for layer in layers.values()):
        return None
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
    if any(count > 1 for count in uses(scores).values()):  # functionally too, as in F.linear(h, layer.weight.T)
        return None
    overwritten = any(t._version != version for t, version in versions)  # by nn.ReLU(inplace=True), say
    dimensions = {name: 2 if isinstance(layer, nn.Linear) else 4 for name, layer in layers.items()}
    if overwritten or any(
        len(c) != 1 or c[0][0].ndim != dimensions[name] or len(c[0][0]) != len(x) for name, c in calls.items()
    ):
        return None

    v = vectors(scores.detach())
    inputs = {
        name: _prepared(layer, calls[name][0][0].detach().to(dtype_of(layer)), power) for name, layer in layers.items()
    }
    at = [call[0][1] for call in calls.values()]
    total: Weights = {}
    for k in range(len(v)):
        at_outputs = torch.autograd.grad(scores, at, v[k], retain_graph=k + 1 < len(v), allow_unused=True)
        for (name, layer), g in zip(layers.items(), at_outputs, strict=True):
            g = (torch.zeros_like(calls[name][0][1]) if g is None else g).to(dtype_of(layer))
            weight, bias = _sums(layer, inputs[name], g, power)
            prefix = f"{name}." if name else ""
            if layer.weight.requires_grad:
                _add(total, f"{prefix}weight", weight)
            if layer.bias is not None and layer.bias.requires_grad:
                _add(total, f"{prefix}bias", bias)
    return total


def uses(scores: Tensor) -> Counter[Tensor]:
    """How often each trainable tensor goes into the scores.

    >>> layer = nn.Linear(2, 2)
    >>> found = uses(nn.functional.linear(layer(torch.ones(1, 2)), layer.weight))
    >>> found[layer.weight], found[layer.bias]
    (2, 1)
    """
    found: Counter[Tensor] = Counter()
    ahead, seen = [scores.grad_fn], {scores.grad_fn}
    while ahead:
        node = ahead.pop()
        for before, _ in node.next_functions if node is not None else ():
            weight = getattr(before, "variable", None)  # of a node where gradients end
            if weight is not None:
                found[weight] += 1
            elif before not in seen:
                seen.add(before)
                ahead.append(before)
    return found


def has_patches(layer: nn.Module) -> bool:
    """Whether a layer is one matrix product: linear, or a convolution whose patches ``F.unfold`` can make.

    >>> has_patches(nn.Conv2d(2, 4, 3)), has_patches(nn.Conv2d(2, 4, 3, groups=2))
    (True, False)
    """
    if list(layer._parameters) != ["weight", "bias"]:  # as nn.utils.spectral_norm leaves them
        return False
    if type(layer) is nn.Conv2d:
        return layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return type(layer) is nn.Linear


def dtype_of(layer: nn.Module) -> torch.dtype:
    """The type of a layer's weights, in which sums over its activations are taken: autocast gives those fewer bits.

    >>> dtype_of(nn.Linear(2, 3))
    torch.float32
    """
    return next(layer.parameters(recurse=False)).dtype


def _prepared(layer: nn.Module, a: Tensor, power: int) -> Tensor:
    """What the sums need of a layer's input: its power, or a convolution's patches (B, C k k, places)."""
    if not isinstance(layer, nn.Conv2d):
        return _powered(a, power)
    assert not isinstance(layer.padding, str)
    return F.unfold(a, layer.kernel_size, layer.dilation, layer.padding, layer.stride)


def _sums(layer: nn.Module, a: Tensor, g: Tensor, power: int) -> tuple[Tensor, Tensor]:
    """Over samples, of |gradient|^power: for the layer's weight, and for its bias."""
    if not isinstance(layer, nn.Conv2d):
        g = _powered(g, power)
        return g.T @ a, g.sum(dim=0)
    g = g.flatten(2)
    weight = torch.zeros_like(layer.weight).flatten(1)
    chunk = max(1, CHUNK_NUMBERS // layer.weight.numel())
    for start in range(0, len(g), chunk):
        part = slice(start, start + chunk)
        weight += _powered(g[part] @ a[part].mT, power).sum(dim=0)
    return weight.view_as(layer.weight), _powered(g.sum(dim=2), power).sum(dim=0)


def through_vmap(net: nn.Module, x: Tensor, vectors: Callable[[Tensor], Tensor], power: int) -> Weights:
    """``per_sample`` for any net that ``torch.func`` can run, in chunks.

    >>> net = nn.Linear(1, 1, bias=False)
    >>> through_vmap(net, torch.tensor([[1.0], [3.0]]), lambda scores: torch.ones(1, 2, 1), power=1)["weight"]
    tensor([[4.]])
    """
    parameters = {name: p.detach() for name, p in trainable(net).items()}
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
                _add(total, name, _powered(g, power).sum(dim=0))
    return total


def _average(
    net: nn.Module,
    batches: Iterable[Batch],
    vectors: Callable[..., Tensor],
    power: int,
    over: ImportanceOver,
) -> Weights:
    total: Weights = {}
    count = 0
    with evaluating(net):
        for batch in batches:
            if over == "sample":
                part = per_sample(net, batch.x, partial(vectors, batch=batch), power)
            else:
                part = _per_batch(net, batch, vectors, power)
            for name, value in part.items():
                _add(total, name, value)
            count += len(batch.x) if over == "sample" else 1
    if not count:
        raise MethodError("no data to measure importance on: hand end_task the batches of the task just ended")
    return {name: value / count for name, value in total.items()}


def _per_batch(net: nn.Module, batch: Batch, vectors: Callable[[Tensor, Batch], Tensor], power: int) -> Weights:
    """|gradient of the batch's mean|^power; squares are weighted by the batch size, as Hsu et al. do."""
    parameters = trainable(net)
    with torch.enable_grad():
        scores = net(batch.x)
    v = vectors(scores.detach(), batch)[0] / len(batch.x)
    grads = torch.autograd.grad(scores, list(parameters.values()), v, allow_unused=True)
    weight = len(batch.x) if power == 2 else 1
    return {
        name: torch.zeros_like(p) if g is None else weight * _powered(g, power)
        for (name, p), g in zip(parameters.items(), grads, strict=True)
    }


def _powered(t: Tensor, power: int) -> Tensor:
    return t.square() if power == 2 else t.abs()


def _add(total: Weights, name: str, value: Tensor) -> None:
    total[name] = total[name] + value if name in total else value
