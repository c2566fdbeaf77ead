"""Networks by name: built-in, by module:function, and by entry points."""

from __future__ import annotations

import pytest
import torch
from own_package import own_package
from torch import nn

from bgd.errors import SettingError
from bgd.nets import MLP, NETS, VGG, VGG11, LeNet, build_net

CODE = """
import torch
from torch import nn
from bgd.nets import MLP

def build(inputs, outputs, hidden=8):
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs[0] * inputs[1] * inputs[2], hidden), nn.ReLU(),
                         nn.Linear(hidden, outputs))

def with_seed(inputs, outputs, seed, init, widths):
    return MLP(inputs, outputs, widths, init=init, seed=seed)

def with_anything(**keywords):
    return MLP(**keywords)

def narrow(inputs, outputs):
    return build(inputs, outputs - 1)

def other_images(inputs, outputs):
    return build((3, 9, 9), outputs)

def no_module(inputs, outputs):
    return "a network"

def pair(inputs, outputs):
    class Pair(nn.Module):
        def forward(self, x):
            return x, x
    return Pair()

def fails(inputs, outputs):
    raise RuntimeError("no weights found")

def no_inputs(size):
    return None

class Net(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.last = nn.Linear(inputs[0] * inputs[1] * inputs[2], outputs)

    def forward(self, x):
        return self.last(x.flatten(1))

net = nn.Linear(2, 2)
"""
SHAPE = (1, 6, 6)


@pytest.fixture
def package(tmp_path):
    with own_package(tmp_path, CODE) as name:
        yield name


def same(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


@pytest.mark.parametrize("name", NETS)
def test_every_built_in_net_is_built_with_its_outputs(name):
    net = build_net(name, (3, 32, 32), 7, init="he", seed=3).eval()
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 7)


def test_built_in_nets_equal_their_classes():
    assert same(
        build_net("mlp", SHAPE, 3, init="torch", seed=5, widths=(4,)), MLP(SHAPE, 3, (4,), init="torch", seed=5)
    )
    assert same(build_net("lenet", (3, 32, 32), 3, init="xavier", seed=5, widths=(4,)), LeNet((3, 32, 32), 3, seed=5))
    vgg = build_net("vgg11-bn", (3, 32, 32), 3, init="he", seed=5)
    assert same(vgg, VGG((3, 32, 32), 3, VGG11, batch_norm=True, init="he", seed=5))


def test_convolutions_have_the_faster_layout():
    net = build_net("lenet", (3, 32, 32), 10)
    assert net.features[3].weight.is_contiguous(memory_format=torch.channels_last)


def test_settings_reach_built_in_nets():
    dropouts = [
        m.p
        for m in build_net("zenke", (3, 32, 32), 10, settings={"dropout": (0.1, 0.2)}).modules()
        if isinstance(m, nn.Dropout)
    ]
    assert dropouts == [0.1, 0.1, 0.2]
    with pytest.raises(SettingError, match="net 'zenke' has no setting 'droput': did you mean 'dropout'"):
        build_net("zenke", (3, 32, 32), 10, settings={"droput": 0.5})


def test_a_function_of_ones_own_is_reproducible_and_leaves_the_global_generator(package):
    build_net(f"{package}:build", SHAPE, 5)  # imports the module, whose own code may use the generator
    before = torch.get_rng_state()
    nets = [build_net(f"{package}:build", SHAPE, 5, seed=seed, settings={"hidden": 4}) for seed in (1, 1, 2)]
    assert torch.equal(before, torch.get_rng_state())
    assert same(nets[0], nets[1])
    assert not torch.equal(nets[0][1].weight, nets[2][1].weight)
    assert nets[0][1].out_features == 4
    assert nets[0].training


def test_keywords_are_passed_where_the_function_takes_them(package):
    named = build_net(f"{package}:with_seed", SHAPE, 5, init="he", seed=3, widths=(7,))
    assert same(named, MLP(SHAPE, 5, (7,), init="he", seed=3))
    anything = build_net(
        f"{package}:with_anything", SHAPE, 5, init="he", seed=3, widths=(7,), settings={"init": "torch"}
    )
    assert same(anything, MLP(SHAPE, 5, init="torch", seed=3))
    assert build_net(f"{package}:Net", SHAPE, 5).last.out_features == 5


def test_an_entry_point_names_a_net(tmp_path):
    with own_package(tmp_path, CODE, {"bgd.nets": {"own-net": "ownpackage:build"}}):
        assert build_net("own-net", SHAPE, 5)[3].out_features == 5
        with pytest.raises(ValueError, match="no net 'own-nets': did you mean 'own-net'"):
            build_net("own-nets", SHAPE, 5)


@pytest.mark.parametrize(
    ("attribute", "settings", "message"),
    [
        ("narrow", {}, r"a batch of shape \(2, 1, 6, 6\) gave scores of shape \(2, 4\), but \(2, 5\) is needed"),
        ("other_images", {}, r"'ownpackage:other_images' fails on a batch of shape \(2, 1, 6, 6\): RuntimeError"),
        ("no_module", {}, "'ownpackage:no_module' returned a str: return a torch.nn.Module"),
        ("pair", {}, "gave scores of shape tuple"),
        ("fails", {}, "'ownpackage:fails': RuntimeError: no weights found"),
        ("no_inputs", {}, "'ownpackage:no_inputs': TypeError: .*missing 1 required positional argument: 'size'"),
        ("net", {}, "'ownpackage:net' is a Linear: name a function or class"),
        ("build", {"hiden": 3}, "'ownpackage:build' has no setting 'hiden': did you mean 'hidden'"),
        ("biuld", {}, "did you mean 'build'"),
    ],
)
def test_what_is_no_network_is_rejected(package, attribute, settings, message):
    with pytest.raises(ValueError, match=message):
        build_net(f"{package}:{attribute}", SHAPE, 5, settings=settings)
