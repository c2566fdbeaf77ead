import math

import pytest
import torch
from scipy import stats
from torch import nn

from bgd.nets import he_, he_out_, initialise, torch_, xavier_


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("layer", "weight_variance", "bias_variance"),
    [
        (nn.Linear(50, 3000), 2 / 3050, 2 / 3001),
        (nn.Conv2d(4, 3000, 3), 2 / (4 * 9 + 3000 * 9), 2 / (1 + 9 * 3000)),
        (nn.Conv2d(4, 3000, 5), 2 / (4 * 25 + 3000 * 25), 2 / (1 + 9 * 3000)),
    ],
)
def test_xavier_samples_normals_of_the_documented_variances(layer, weight_variance, bias_variance):
    xavier_(layer, seeded())
    for values, variance in ((layer.weight, weight_variance), (layer.bias, bias_variance)):
        scaled = values.detach().flatten()[:20_000].numpy() / math.sqrt(variance)
        assert stats.kstest(scaled, "norm").pvalue > 0.01


@pytest.mark.parametrize("make", [lambda: nn.Linear(7, 5), lambda: nn.Conv2d(3, 5, 3)])
def test_torch_default_is_torch_bit_for_bit(make):
    with torch.random.fork_rng():
        torch.manual_seed(2019)
        expected = make()
    layer = make()
    torch_(layer, seeded(2019))
    assert torch.equal(layer.weight, expected.weight)
    assert torch.equal(layer.bias, expected.bias)


def test_he_variance_and_zero_bias():
    layer = nn.Linear(64, 4000)
    he_(layer, seeded())
    assert layer.weight.var().item() == pytest.approx(2 / 64, rel=0.02)
    assert not layer.bias.any()


def test_he_by_outputs_counts_each_position_of_the_kernel():
    layer, head = nn.Conv2d(64, 100, 3), nn.Linear(64, 4000)
    he_out_(layer, seeded())
    he_out_(head, seeded())
    assert layer.weight.var().item() == pytest.approx(2 / 900, rel=0.02)
    assert head.weight.var().item() == pytest.approx(2 / 64, rel=0.02)
    assert not layer.bias.any()


@pytest.mark.parametrize("rule", [xavier_, he_, he_out_, torch_])
def test_layers_without_bias(rule):
    rule(nn.Linear(3, 2, bias=False), seeded())


def test_a_generator_continues_from_net_to_net_and_a_seed_restarts():
    one, two, three = (nn.Linear(4, 4) for _ in range(3))
    generator = seeded(5)
    initialise(one, "xavier", generator)
    initialise(two, "xavier", generator)
    initialise(three, "xavier", 5)
    assert not torch.equal(one.weight, two.weight)
    assert torch.equal(one.weight, three.weight)
