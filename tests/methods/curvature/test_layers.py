"""Layers as matrices, and the layers that have no curvature block."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bgd.methods.common.types import MethodError
from bgd.methods.curvature.layers import find_layers, from_matrix, to_matrix


@pytest.mark.parametrize("layer", [nn.Linear(3, 2), nn.Linear(3, 2, bias=False), nn.Conv2d(2, 3, 2), nn.BatchNorm2d(4)])
def test_from_matrix_inverts_to_matrix(layer):
    matrix = to_matrix(layer)
    assert matrix.numel() == sum(p.numel() for p in layer.parameters())
    for p, t in zip(layer.parameters(), from_matrix(layer, matrix), strict=True):
        assert torch.equal(p, t)


def test_a_matrix_acts_as_its_layer_does():
    layer, x = nn.Conv2d(2, 3, 2), torch.randn(1, 2, 2, 2)
    column = torch.cat([x.flatten(), torch.ones(1)])
    assert torch.allclose(layer(x).flatten(), to_matrix(layer) @ column, atol=1e-6)


def frozen_bias() -> nn.Module:
    layer = nn.Linear(2, 2)
    layer.bias.requires_grad_(False)
    return nn.Sequential(layer)


def tied() -> nn.Module:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    return net


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (nn.Sequential(nn.LayerNorm(2)), "'0.weight' of LayerNorm"),
        (nn.Conv2d(2, 2, 1, groups=2), "groups=1"),
        (nn.Conv2d(2, 2, 3, padding="same"), "padding in numbers"),
        (frozen_bias(), "freeze all of them or none"),
        (tied(), "share a parameter"),
        (nn.utils.spectral_norm(nn.Linear(2, 2)), "'bias' of Linear"),
    ],
)
def test_layers_without_factors_are_rejected(net, message):
    with pytest.raises(MethodError, match=message):
        find_layers(net)


def test_a_frozen_layer_is_left_out():
    net = nn.Sequential(nn.LayerNorm(3), nn.Linear(3, 2))
    net[0].requires_grad_(False)
    assert list(find_layers(net)) == ["1"]
