import math

import pytest
import torch
from scipy import stats
from torch import nn

from bgd.nets import INITS, MLP, NETS, build_net, he_, he_out_, initialise, torch_, xavier_


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


def test_each_head_starts_as_a_layer_of_its_own():
    """In the paper's authors' code every task has an nn.Linear(n, C)."""
    sizes = (1000, 3000)
    layer = nn.Linear(20, sum(sizes))
    xavier_(layer, seeded(), heads=sizes)
    rows = zip(layer.weight.split(sizes), layer.bias.split(sizes), sizes, strict=True)
    for weight, bias, outputs in rows:
        for values, variance in ((weight, 2 / (20 + outputs)), (bias, 2 / (1 + outputs))):
            scaled = values.detach().flatten()[:20_000].numpy() / math.sqrt(variance)
            assert stats.kstest(scaled, "norm").pvalue > 0.01


@pytest.mark.parametrize("name", NETS)
def test_heads_of_their_own_change_the_output_layer_alone_and_only_under_rules_that_count_outputs(name):
    def build(init, heads=()):
        return build_net(name, (3, 32, 32), 10, heads=heads, init=init, seed=3, widths=(8,)).state_dict()

    for init in ("xavier", "torch"):
        joined, own = build(init), build(init, (2, 2, 2, 2, 2))
        changed = {key for key, value in joined.items() if not torch.equal(value, own[key])}
        assert changed == ({"head.weight", "head.bias"} if init == "xavier" else set())


@pytest.mark.parametrize(
    ("init", "weights", "biases"),
    [
        ("xavier", "normal", 2 / 3001),
        ("xavier-zero-bias", "normal", 0),
        ("xavier-torch-bias", "normal", 1 / 3 / 50),
        ("torch", "uniform", 1 / 3 / 50),
        ("torch-zero-bias", "uniform", 0),
        ("torch-normal-bias", "uniform", 2 / 3001),
    ],
)
def test_weights_and_biases_have_rules_of_their_own(init, weights, biases):
    layer = nn.Linear(50, 3000)
    INITS[init](layer, seeded(), ())
    assert layer.weight.var().item() == pytest.approx(2 / 3050 if weights == "normal" else 1 / 3 / 50, rel=0.02)
    assert (layer.weight.abs().max() > 3 * layer.weight.std()) == (weights == "normal")
    assert layer.bias.var().item() == pytest.approx(biases, rel=0.1)


def test_heads_that_do_not_add_up_are_refused():
    with pytest.raises(ValueError, match=r"heads=\(2, 2\) have 4 outputs, but the net has 5"):
        MLP(3, 5, (4,), heads=(2, 2))


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
