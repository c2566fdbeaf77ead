"""Curvature blocks of a layer: Kronecker products and diagonals, with their inverses and roots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bgd.methods.common.types import MethodError


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

        It approximates A x G + damping I, with the damping split between the factors as Martens & Grosse (2015) do.
        Where a factor is 0 there is nothing to balance, and pi = 1.
        """
        sizes = self.a.diagonal().mean(), self.g.diagonal().mean()
        pi = (sizes[0] / sizes[1]).sqrt() if sizes[0] > 0 and sizes[1] > 0 else torch.ones_like(sizes[0])
        root = damping**0.5
        return Kronecker(_plus_identity(self.a, pi * root), _plus_identity(self.g, root / pi))

    def inverse(self) -> Kronecker:
        """A^-1 x G^-1."""
        return Kronecker(_inverse(self.a), _inverse(self.g))

    def inverse_root(self) -> Kronecker:
        """R with R R^T = A^-1 x G^-1: ``times(noise)`` is a sample with that covariance.

        Computed from the factors, whose inverses may be too ill-conditioned to have a root in float32.
        """
        return Kronecker(_inverse_triangle(self.a), _inverse_triangle(self.g).mT)

    def scaled(self, factor: float) -> Kronecker:
        """A x (factor G)."""
        return Kronecker(self.a, factor * self.g)


class Diagonal(NamedTuple):
    """A diagonal operator on matrices D: D -> d * D. The same methods as :class:`Kronecker`.

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


def make_block(parts: Sequence[Tensor]) -> Block:
    """The inverse of ``list(block)``: two factors, or one diagonal.

    >>> make_block([torch.ones(1, 2)])
    Diagonal(d=tensor([[1., 1.]]))
    """
    return Kronecker(*parts) if len(parts) == 2 else Diagonal(*parts)


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
            f"largest entry is {m.abs().max():.1e}: if that is huge, the network has diverged: lower lr"
        )
    return root
