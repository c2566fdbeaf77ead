"""The quadratic penalty of the Laplace approximations."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bgd.methods.curvature.block_penalty import BlockPenalty
from bgd.methods.curvature.blocks import Diagonal


def test_moving_the_anchor_keeps_the_function_or_resets_value_and_slope():
    p = nn.Parameter(torch.randn(3).double())
    penalty = BlockPenalty({"p": [p]})
    penalty.add({"p": Diagonal(torch.rand(3, 1).double())})
    with torch.no_grad():
        p.add_(1.0)
    value = penalty.value()
    penalty.move_anchor(keep=True)
    assert penalty.value() == pytest.approx(value, rel=1e-12)
    with torch.no_grad():
        p.sub_(1.0)
    assert penalty.value() == pytest.approx(0, abs=1e-12)
    penalty.move_anchor(keep=False)
    p.grad = torch.zeros_like(p)
    penalty.add_gradient(1.0)
    assert penalty.value() == 0
    assert p.grad.eq(0).all()
