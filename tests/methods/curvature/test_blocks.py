"""Kronecker products and diagonals against full matrices."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from bgd.methods.common.types import MethodError
from bgd.methods.curvature.blocks import Diagonal, Kronecker


def spd(n: int) -> Tensor:
    m = torch.randn(n, n + 2).double()
    return m @ m.T / n


def vec(m: Tensor) -> Tensor:
    return m.T.reshape(-1)


def test_products_inverses_and_quadratic_forms_are_those_of_the_full_matrix():
    block, d = Kronecker(spd(3), spd(2)), torch.randn(2, 3).double()
    full = torch.kron(block.a, block.g)
    assert torch.allclose(vec(block.times(d)), full @ vec(d))
    assert torch.allclose(block.quadratic(d), vec(d) @ full @ vec(d))
    assert torch.allclose(vec(block.inverse().times(d)), torch.linalg.solve(full, vec(d)))
    assert torch.allclose(torch.kron(*block.scaled(3.0)), 3 * full)
    diagonal = Diagonal(torch.rand(2, 3).double() + 0.1)
    full = torch.diag(vec(diagonal.d))
    assert torch.allclose(vec(diagonal.times(d)), full @ vec(d))
    assert torch.allclose(diagonal.quadratic(d), vec(d) @ full @ vec(d))
    assert torch.allclose(vec(diagonal.inverse().times(d)), torch.linalg.solve(full, vec(d)))
    assert torch.allclose(diagonal.damped(0.5).d, diagonal.d + 0.5)
    assert torch.allclose(diagonal.scaled(3.0).d, 3 * diagonal.d)


def test_damping_is_split_by_the_mean_eigenvalues():
    block = Kronecker(4 * torch.eye(3).double(), torch.eye(2).double())
    damped = block.damped(0.25)  # pi = 2, root = 1/2
    assert torch.allclose(damped.a, 5 * torch.eye(3).double())
    assert torch.allclose(damped.g, 1.25 * torch.eye(2).double())
    # the constant part of (A + pi r)(G + r / pi) is the damping itself
    nothing = Kronecker(torch.zeros(3, 3), torch.zeros(2, 2)).damped(0.25)
    assert torch.allclose(torch.kron(*nothing), 0.25 * torch.eye(6))


@pytest.mark.parametrize("kind", ["kronecker", "diagonal"])
def test_roots_of_inverses_have_the_covariance_of_the_inverse(kind):
    block = Kronecker(spd(3), spd(2)) if kind == "kronecker" else Diagonal(torch.tensor([[0.3, 2.0]]).double())
    units = torch.eye(6 if kind == "kronecker" else 2).double()
    shape = (2, 3) if kind == "kronecker" else (1, 2)
    root = torch.stack([vec(block.inverse_root().times(unit.reshape(shape))) for unit in units], dim=1)
    full = torch.kron(block.a, block.g) if kind == "kronecker" else torch.diag(vec(block.d))
    assert torch.allclose(root @ root.T, torch.linalg.inv(full))


def test_a_singular_factor_is_rejected_with_the_advice_to_use_damping():
    with pytest.raises(MethodError, match="more damping"):
        Kronecker(torch.zeros(2, 2), torch.eye(2)).inverse()
