"""Kronecker-factored curvature: one pair of small matrices for each layer, from an ordinary pass.

A layer computes s = W a, with the bias as the last column of W and a 1 as the last entry of a. The gradient of one
sample is g a^T, g that of the loss at s, and the curvature of W is E[(a a^T) x (g g^T)] (x: Kronecker product, vec by
columns). K-FAC (Martens & Grosse, 2015) takes it for A x G, A = E[a a^T], G = E[g g^T]. It is exact where a a^T and
g g^T do not vary together: one linear layer with squared error, for instance.

A convolution applies W at many places p of one image. The convention is that of KFC (Grosse & Martens, 2016):
A = E[sum_p a_p a_p^T], G = E[mean_p g_p g_p^T]; so for a linear layer on (B, places, features).

Factors are *means over the samples* of a batch, of the gradients of the *summed* loss. The curvature of a loss that
is summed over N samples is N times A x G.

The factors come from hooks of our own rather than from a library for curvature: K-FAC needs them from the training pass
itself, every few iterations and at the price of one backward pass to the activations, under the masks of heads and the
labels trick, and with BatchNorm; the tests hold them against those of curvlinops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.nn import functional as F

from bgd.methods.common.types import MethodError
from bgd.methods.curvature.importance import dtype_of, has_patches, uses


class Kronecker(NamedTuple):
    """The symmetric operator A x G on matrices D (out, in + 1): D -> G D A.

    >>> block = Kronecker(torch.tensor([[2.0]]), torch.tensor([[3.0]]))
    >>> block.times(torch.tensor([[5.0]])), block.quadratic(torch.tensor([[5.0]]))
    (tensor([[30.]]), tensor(150.))
    """

    a: Tensor
    g: Tensor

    def times(self, d: Tensor) -> Tensor:
        """(A x G) vec(D) = vec(G D A); of an inverse, the preconditioned gradient."""
        return self.g @ d @ self.a

    def quadratic(self, d: Tensor) -> Tensor:
        """vec(D)^T (A x G) vec(D) = sum(D * (G D A))."""
        return (d * self.times(d)).sum()

    def damped(self, damping: float) -> Kronecker:
        """(A + pi sqrt(damping) I) x (G + sqrt(damping) / pi I), pi^2 = mean eigenvalue of A / that of G.

        It stands for A x G + damping I, shared between the factors as Martens & Grosse (2015) share it. Where a factor
        is 0 there is nothing to balance, and pi = 1.
        """
        sizes = self.a.diagonal().mean(), self.g.diagonal().mean()
        pi = (sizes[0] / sizes[1]).sqrt() if sizes[0] > 0 and sizes[1] > 0 else torch.ones_like(sizes[0])
        root = damping**0.5
        return Kronecker(_plus_identity(self.a, pi * root), _plus_identity(self.g, root / pi))

    def inverse(self) -> Kronecker:
        """A^-1 x G^-1."""
        return Kronecker(_inverse(self.a), _inverse(self.g))

    def inverse_root(self) -> Kronecker:
        """R with R R^T = A^-1 x G^-1: ``times(noise)`` draws with that covariance, as often as one likes.

        Straight from the factors, whose inverses may be too ill-conditioned to have a root in float32.
        """
        return Kronecker(_inverse_triangle(self.a), _inverse_triangle(self.g).mT)

    def scaled(self, factor: float) -> Kronecker:
        """A x (factor G)."""
        return Kronecker(self.a, factor * self.g)


class Diagonal(NamedTuple):
    """A diagonal operator on matrices D: D -> d * D. The same verbs as :class:`Kronecker`.

    >>> Diagonal(torch.tensor([[4.0]])).inverse_root().times(torch.ones(1, 1))
    tensor([[0.5000]])
    """

    d: Tensor

    def times(self, d: Tensor) -> Tensor:
        """Entry by entry."""
        return self.d * d

    def quadratic(self, d: Tensor) -> Tensor:
        """sum(d D^2)."""
        return (d * self.times(d)).sum()

    def damped(self, damping: float) -> Diagonal:
        """Plus damping."""
        return Diagonal(self.d + damping)

    def inverse(self) -> Diagonal:
        """1 / d."""
        return Diagonal(1 / self.d)

    def inverse_root(self) -> Diagonal:
        """1 / sqrt(d)."""
        return Diagonal(self.d.rsqrt())

    def scaled(self, factor: float) -> Diagonal:
        """Times factor."""
        return Diagonal(factor * self.d)


Block = Kronecker | Diagonal
Curvature = dict[str, Block]
"""One block for each layer, by the layer's name."""


def block_of(parts: Sequence[Tensor]) -> Block:
    """The way back from ``list(block)``: two factors, or one diagonal.

    >>> block_of([torch.ones(1, 2)])
    Diagonal(d=tensor([[1., 1.]]))
    """
    return Kronecker(*parts) if len(parts) == 2 else Diagonal(*parts)


def layers_of(net: nn.Module) -> dict[str, nn.Module]:
    """The layers that learn, by name; an error where a parameter belongs to none that has a block.

    ``nn.Linear`` and ``nn.Conv2d`` (no groups, padding by zeros) get Kronecker factors; ``nn.BatchNorm1d`` and
    ``nn.BatchNorm2d`` a diagonal.

    >>> list(layers_of(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(2, 2))))
    ['0', '1', '3']
    >>> layers_of(nn.Sequential(nn.LayerNorm(4)))
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
        if not (has_patches(layer) or type(layer) in (nn.BatchNorm1d, nn.BatchNorm2d)):
            raise MethodError(
                f"no Kronecker factors for {name!r} of {type(layer).__name__}: use Linear, Conv2d (groups=1, "
                "padding in numbers, with zeros), BatchNorm1d or BatchNorm2d, or freeze it with requires_grad_(False)"
            )
        if not all(q.requires_grad for q in layer.parameters(recurse=False)):
            raise MethodError(f"{owner!r} learns {name!r} but not all of its parameters: freeze all of them or none")
        layers[owner] = layer
    return layers


def join(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors of the same length side by side, as one matrix: a weight (out, ...) and a bias (out,), say.

    >>> join([torch.zeros(2, 3, 5), torch.ones(2)]).shape
    torch.Size([2, 16])
    """
    return torch.cat([t.reshape(len(t) if t.ndim else 1, -1) for t in tensors], dim=1)


def part(matrix: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """The way back from :func:`join`, to the shapes of ``like``.

    >>> [t.shape for t in part(torch.zeros(2, 16), [torch.zeros(2, 3, 5), torch.ones(2)])]
    [torch.Size([2, 3, 5]), torch.Size([2])]
    """
    parts = torch.split(matrix, [t.numel() // len(matrix) for t in like], dim=1)
    return [p.reshape(t.shape) for p, t in zip(parts, like, strict=True)]


def to_matrix(layer: nn.Module, of: Callable[[nn.Parameter], Tensor] = lambda p: p.detach()) -> Tensor:
    """A layer's parameters as one matrix (out, in + 1), the bias last; or what ``of`` says of each, its gradient say.

    >>> layer = nn.Linear(3, 2)
    >>> to_matrix(layer).shape, to_matrix(layer, torch.zeros_like).sum()
    (torch.Size([2, 4]), tensor(0.))
    """
    return join([of(p) for p in layer.parameters(recurse=False)])


def from_matrix(layer: nn.Module, matrix: Tensor) -> list[Tensor]:
    """The way back: one tensor for each parameter, in the order and the shapes of ``layer.parameters()``.

    >>> layer = nn.Conv2d(2, 4, 3)
    >>> [t.shape for t in from_matrix(layer, to_matrix(layer))]
    [torch.Size([4, 2, 3, 3]), torch.Size([4])]
    """
    return part(matrix, list(layer.parameters(recurse=False)))


class Recording:
    """What each layer was given, and where its output stands in the graph: made by :func:`recording`."""

    def __init__(self, layers: dict[str, nn.Module]) -> None:
        self.layers = layers
        self.calls: dict[str, tuple[Tensor, int, torch.autograd.graph.GradientEdge]] = {}

    def note(self, name: str, a: Tensor, out: Tensor) -> None:
        """One call of a layer. The edge stays that of ``out``, even if an in-place ReLU overwrites it."""
        if name in self.calls:
            raise MethodError(f"the layer {name!r} was called twice in one pass: Kronecker factors need a single call")
        self.calls[name] = (a.detach(), a._version, get_gradient_edge(out))

    def curvature(self, scores: Tensor, vectors: Tensor) -> Curvature:
        """The block of every layer, as a mean over the samples; one backward pass to the activations per vector.

        The graph stays, so that ``loss.backward()`` may follow. A layer that had no part in the pass has curvature 0.

        Args:
            scores: what the network gave in the recorded pass, (B, outputs).
            vectors: the gradients v of the summed loss at the scores, (K, B, outputs), with sum_k v_k v_k^T the
                curvature of the loss of each sample: ``likelihood.score_gradients(scores, y, label, generator)``. The
                label "true" gives the empirical Fisher, "sampled" an unbiased Fisher, "exact" the Fisher itself (for
                cross-entropy and squared error the Gauss-Newton matrix).
        """
        called = list(self.calls)
        for name in called:
            if len(self.calls[name][0]) != len(scores):
                raise MethodError(
                    f"the layer {name!r} was given {len(self.calls[name][0])} rows for {len(scores)} samples: keep the "
                    "samples as the first dimension, as nn.Linear allows, instead of folding others into it"
                )
        used = uses(scores)
        for name, layer in self.layers.items():
            if any(used[p] > (name in self.calls) for p in layer.parameters(recurse=False)):
                raise MethodError(
                    f"the weights of the layer {name!r} are used outside of its call too, as in F.linear(x, "
                    "layer.weight): Kronecker factors need each layer called as a module, once"
                )
        edges = [self.calls[name][2] for name in called]
        squares: dict[str, Tensor] = {}
        prepared = {name: self._prepared(name) for name in called}
        for v in vectors:
            gradients = torch.autograd.grad(scores, edges, v, retain_graph=True, allow_unused=True)
            for name, g in zip(called, gradients, strict=True):
                if g is not None:
                    square = _square(self.layers[name], prepared[name], g.to(prepared[name].dtype))
                    squares[name] = squares[name] + square if name in squares else square
        return {name: self._block(name, prepared.get(name), squares.get(name)) for name in self.layers}

    def _prepared(self, name: str) -> Tensor:
        layer = self.layers[name]
        a, version, _ = self.calls[name]
        if a._version != version:
            raise MethodError(f"the input of the layer {name!r} was overwritten in place: use inplace=False before it")
        a = a.to(dtype_of(layer))
        if isinstance(layer, nn.Linear | nn.Conv2d):
            return _second_moment(layer, a)
        assert isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)
        own = layer.training or layer.running_mean is None
        stats = (None, None) if own else (layer.running_mean, layer.running_var)
        return F.batch_norm(a, *stats, training=own, eps=layer.eps)

    def _block(self, name: str, prepared: Tensor | None, square: Tensor | None) -> Block:
        layer = self.layers[name]
        matrix = to_matrix(layer)
        if not isinstance(layer, nn.Linear | nn.Conv2d):
            return Diagonal(torch.zeros_like(matrix) if square is None else square)
        a = matrix.new_zeros(matrix.shape[1], matrix.shape[1]) if prepared is None else prepared
        return Kronecker(a, matrix.new_zeros(len(matrix), len(matrix)) if square is None else square)


@contextmanager
def recording(net: nn.Module) -> Iterator[Recording]:
    """Record a pass, for the factors; the hooks are gone on exit.

    >>> net = nn.Linear(1, 1)
    >>> with recording(net) as record:
    ...     scores = net(torch.tensor([[1.0], [3.0]]))
    >>> record.curvature(scores, vectors=torch.tensor([[[1.0], [2.0]]]))
    {'': Kronecker(a=tensor([[5., 2.],
            [2., 1.]]), g=tensor([[2.5000]]))}
    """
    record = Recording(layers_of(net))
    hooks = [
        layer.register_forward_hook(lambda _layer, args, out, name=name: record.note(name, args[0], out))
        for name, layer in record.layers.items()
    ]
    try:
        with torch.enable_grad():
            yield record
    finally:
        for hook in hooks:
            hook.remove()


def _second_moment(layer: nn.Linear | nn.Conv2d, a: Tensor) -> Tensor:
    """mean_b sum_p a_p a_p^T, with the 1 of the bias where there is one."""
    samples = len(a)
    if isinstance(layer, nn.Conv2d):
        assert not isinstance(layer.padding, str)
        patches = F.unfold(a, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
        a = patches.transpose(0, 1).flatten(1)  # (features, B places)
    else:
        a = a.reshape(-1, a.shape[-1]).T
    moment = a @ a.T
    if layer.bias is not None:
        mean = a.sum(dim=1, keepdim=True)
        corner = mean.new_full((1, 1), a.shape[1])
        moment = torch.cat([torch.cat([moment, mean], dim=1), torch.cat([mean.T, corner], dim=1)])
    return moment / samples


def _square(layer: nn.Module, prepared: Tensor, g: Tensor) -> Tensor:
    """mean_b mean_p g_p g_p^T; for BatchNorm mean_b of the squared gradients of its weight and bias."""
    if isinstance(layer, nn.Linear):
        rows = g.reshape(-1, g.shape[-1])
        return rows.T @ rows / len(rows)
    if isinstance(layer, nn.Conv2d):
        columns = g.transpose(0, 1).flatten(1)
        return columns @ columns.T / columns.shape[1]
    places = g.unsqueeze(-1).flatten(2), prepared.unsqueeze(-1).flatten(2)
    per_sample = torch.stack([(places[0] * places[1]).sum(dim=2), places[0].sum(dim=2)], dim=2)
    return per_sample.square().mean(dim=0)


def _plus_identity(m: Tensor, value: Tensor) -> Tensor:
    return m + value * torch.eye(len(m), dtype=m.dtype, device=m.device)


def _inverse(m: Tensor) -> Tensor:
    return torch.cholesky_inverse(_cholesky(m))


def _inverse_triangle(m: Tensor) -> Tensor:
    """L^-1 of m = L L^T, so that m^-1 = L^-T L^-1."""
    identity = torch.eye(len(m), dtype=m.dtype, device=m.device)
    inverse: Tensor = torch.linalg.solve_triangular(_cholesky(m), identity, upper=False)
    return inverse


def _cholesky(m: Tensor) -> Tensor:
    root: Tensor
    root, failed = torch.linalg.cholesky_ex(m)
    if failed:
        raise MethodError(
            f"a factor of {len(m)} x {len(m)} is not positive definite, and has no inverse: use more damping; its "
            f"largest entry is {m.abs().max():.1e}: if that is huge, the network has diverged, and wants a smaller lr"
        )
    return root
