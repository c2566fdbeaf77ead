"""Kronecker-factored curvature: one pair of small matrices for each layer, from an ordinary forward pass.

A layer computes s = W a, with the bias as the last column of W and a 1 as the last entry of a. The gradient of one
sample is g a^T, g that of the loss at s, and the curvature of W is E[(a a^T) x (g g^T)] (x: Kronecker product, vec by
columns). K-FAC (Martens & Grosse, 2015) takes it for A x G, A = E[a a^T], G = E[g g^T]. It is exact where a a^T and
g g^T are uncorrelated: one linear layer with squared error, for instance.

A convolution applies W at many positions p of one image. The convention is that of KFC (Grosse & Martens, 2016):
A = E[sum_p a_p a_p^T], G = E[mean_p g_p g_p^T]; the same for a linear layer on (B, positions, features).

Factors are *means over the samples* of a batch, of the gradients of the *summed* loss. The curvature of a loss that
is summed over N samples is N times A x G.

The factors come from hooks of our own rather than from a library for curvature: K-FAC needs them from the training pass
itself, every few iterations and at the cost of one backward pass to the activations, under the masks of heads and the
labels trick, and with BatchNorm; the tests compare them with those of curvlinops.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.nn import functional as F

from bgd.methods.common.types import MethodError
from bgd.methods.curvature.blocks import Block, Curvature, Diagonal, Kronecker
from bgd.methods.curvature.layers import count_uses, dtype_of, find_layers, to_matrix, unfold


class Recording:
    """The input of each layer, and the node of its output in the graph: made by :func:`recording`."""

    def __init__(self, layers: dict[str, nn.Module]) -> None:
        self.layers = layers
        self.calls: dict[str, tuple[Tensor, int, torch.autograd.graph.GradientEdge]] = {}

    def add_call(self, name: str, a: Tensor, out: Tensor) -> None:
        """One call of a layer. The edge stays that of ``out``, even if an in-place ReLU overwrites it."""
        if name in self.calls:
            raise MethodError(f"the layer {name!r} was called twice in one pass: Kronecker factors need a single call")
        self.calls[name] = (a.detach(), a._version, get_gradient_edge(out))

    def curvature(self, scores: Tensor, vectors: Tensor) -> Curvature:
        """The block of every layer, as a mean over the samples; one backward pass to the activations per vector.

        The graph stays, so that ``loss.backward()`` may follow. A layer that was not called has curvature 0.

        Args:
            scores: of the recorded pass, (B, outputs).
            vectors: the gradients v of the summed loss at the scores, (K, B, outputs), with sum_k v_k v_k^T the
                curvature of the loss of each sample: ``likelihood.score_gradients(scores, y, label, generator)``. The
                label "true" gives the empirical Fisher, "sampled" an unbiased Fisher, "exact" the Fisher itself (for
                cross-entropy and squared error the Gauss-Newton matrix).
        """
        called = list(self.calls)
        for name in called:
            if len(self.calls[name][0]) != len(scores):
                raise MethodError(
                    f"the layer {name!r} got {len(self.calls[name][0])} rows for {len(scores)} samples: keep the "
                    "samples as the first dimension, as nn.Linear allows, instead of folding others into it"
                )
        used = count_uses(scores)
        for name, layer in self.layers.items():
            if any(used[p] > (name in self.calls) for p in layer.parameters(recurse=False)):
                raise MethodError(
                    f"the weights of the layer {name!r} are used outside of its call too, as in F.linear(x, "
                    "layer.weight): Kronecker factors need each layer called as a module, once"
                )
        edges = [self.calls[name][2] for name in called]
        moments: dict[str, Tensor] = {}
        inputs = {name: self._input_statistic(name) for name in called}
        for v in vectors:
            gradients = torch.autograd.grad(scores, edges, v, retain_graph=True, allow_unused=True)
            for name, g in zip(called, gradients, strict=True):
                if g is not None:
                    moment = _output_moment(self.layers[name], inputs[name], g.to(inputs[name].dtype))
                    moments[name] = moments[name] + moment if name in moments else moment
        return {name: self._block(name, inputs.get(name), moments.get(name)) for name in self.layers}

    def _input_statistic(self, name: str) -> Tensor:
        """The factor A of a layer; of BatchNorm the normalised input, which its gradients are made of."""
        layer = self.layers[name]
        a, version, _ = self.calls[name]
        if a._version != version:
            raise MethodError(f"the input of the layer {name!r} was overwritten in place: use inplace=False before it")
        a = a.to(dtype_of(layer))
        if isinstance(layer, nn.Linear | nn.Conv2d):
            return _input_moment(layer, a)
        assert isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)
        of_batch = layer.training or layer.running_mean is None
        stats = (None, None) if of_batch else (layer.running_mean, layer.running_var)
        return F.batch_norm(a, *stats, training=of_batch, eps=layer.eps)

    def _block(self, name: str, statistic: Tensor | None, moment: Tensor | None) -> Block:
        layer = self.layers[name]
        matrix = to_matrix(layer)
        if not isinstance(layer, nn.Linear | nn.Conv2d):
            return Diagonal(torch.zeros_like(matrix) if moment is None else moment)
        a = matrix.new_zeros(matrix.shape[1], matrix.shape[1]) if statistic is None else statistic
        return Kronecker(a, matrix.new_zeros(len(matrix), len(matrix)) if moment is None else moment)


@contextmanager
def recording(net: nn.Module) -> Iterator[Recording]:
    """Record a forward pass, for the factors; the hooks are removed on exit.

    >>> net = nn.Linear(1, 1)
    >>> with recording(net) as record:
    ...     scores = net(torch.tensor([[1.0], [3.0]]))
    >>> record.curvature(scores, vectors=torch.tensor([[[1.0], [2.0]]]))
    {'': Kronecker(a=tensor([[5., 2.],
            [2., 1.]]), g=tensor([[2.5000]]))}
    """
    record = Recording(find_layers(net))
    hooks = [
        layer.register_forward_hook(lambda _layer, args, out, name=name: record.add_call(name, args[0], out))
        for name, layer in record.layers.items()
    ]
    try:
        with torch.enable_grad():
            yield record
    finally:
        for hook in hooks:
            hook.remove()


def _input_moment(layer: nn.Linear | nn.Conv2d, a: Tensor) -> Tensor:
    """mean_b sum_p a_p a_p^T, with the 1 of the bias where there is one."""
    samples = len(a)
    # (features, B positions)
    a = unfold(layer, a).transpose(0, 1).flatten(1) if isinstance(layer, nn.Conv2d) else a.reshape(-1, a.shape[-1]).T
    moment = a @ a.T
    if layer.bias is not None:
        mean = a.sum(dim=1, keepdim=True)
        corner = mean.new_full((1, 1), a.shape[1])
        moment = torch.cat([torch.cat([moment, mean], dim=1), torch.cat([mean.T, corner], dim=1)])
    return moment / samples


def _output_moment(layer: nn.Module, statistic: Tensor, g: Tensor) -> Tensor:
    """mean_b mean_p g_p g_p^T; for BatchNorm mean_b of the squared gradients of its weight and bias."""
    if isinstance(layer, nn.Linear):
        rows = g.reshape(-1, g.shape[-1])
        return rows.T @ rows / len(rows)
    if isinstance(layer, nn.Conv2d):
        columns = g.transpose(0, 1).flatten(1)
        return columns @ columns.T / columns.shape[1]
    g, normalised = g.unsqueeze(-1).flatten(2), statistic.unsqueeze(-1).flatten(2)
    per_sample = torch.stack([(g * normalised).sum(dim=2), g.sum(dim=2)], dim=2)
    return per_sample.square().mean(dim=0)
