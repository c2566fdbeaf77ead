"""The convolutional nets against what can be counted by hand."""

import re

import pytest
import torch
from scipy import stats
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from bgd.nets import VGG, VGG11, VGG16, ConvNet, LeNet, ZenkeNet, build_net, initialise
from bgd.nets.convnet import conv

NETS = {
    "lenet": LeNet,
    "zenke": ZenkeNet,
    "vgg16": VGG,
    "vgg16-bn": lambda *a, **k: VGG(*a, **k, batch_norm=True),
    "vgg11": lambda *a, **k: VGG(*a, **k, plan=VGG11),
}


def by_hand(convs, *, bias=True, norm=False):
    """Parameters of a chain of convolutions, (kernel, filters) each, on RGB images."""
    total, channels = 0, 3
    for kernel, filters in convs:
        total += kernel**2 * channels * filters + filters * bias + 2 * filters * norm
        channels = filters
    return total


VGG16_CONVS = [(3, f) for f in (32, 32, 64, 64, 128, 128, 128, 256, 256, 256, 256, 256, 256)]
VGG11_CONVS = [(3, f) for f in (64, 128, 256, 256, 512, 512, 512, 512)]


@pytest.mark.parametrize(
    ("name", "outputs", "expected"),
    [
        ("lenet", 50, by_hand([(5, 20), (5, 50)]) + 1800 * 500 + 500 + 500 * 50 + 50),
        ("zenke", 60, by_hand([(3, 32), (3, 32), (3, 64), (3, 64)]) + 2304 * 512 + 512 + 512 * 60 + 60),
        ("vgg16", 10, by_hand(VGG16_CONVS) + 256 * 10 + 10),
        ("vgg16-bn", 10, by_hand(VGG16_CONVS, bias=False, norm=True) + 256 * 10 + 10),
        ("vgg11", 10, by_hand(VGG11_CONVS) + 512 * 10 + 10),
    ],
)
def test_parameters_and_outputs(name, outputs, expected):
    net = NETS[name]((3, 32, 32), outputs)
    assert sum(p.numel() for p in net.parameters()) == expected
    assert net.eval()(torch.zeros(2, 3, 32, 32)).shape == (2, outputs)
    assert net(torch.zeros(0, 3, 32, 32)).shape == (0, outputs)


def test_known_totals():
    """The same numbers as an independent sum on paper."""
    assert sum(p.numel() for p in LeNet().parameters()) == 932_080
    assert sum(p.numel() for p in ZenkeNet().parameters()) == 1_250_858
    assert sum(p.numel() for p in VGG(plan=VGG11).parameters()) == 9_225_610


@pytest.mark.parametrize(("net", "side", "field"), [(LeNet, 6, 16), (ZenkeNet, 6, 16)])
def test_receptive_field(net, side, field):
    """A unit amid the features sees field x field pixels, those around it and no other."""
    features = net().eval().features
    for layer in features:
        if isinstance(layer, nn.Conv2d):
            nn.init.constant_(layer.weight, 1e-2)
            nn.init.zeros_(layer.bias)
    # one pixel of one channel lit in each image: with positive weights nothing hides behind a maximum
    lit = torch.zeros(1024, 3, 32 * 32)
    lit[torch.arange(1024), 0, torch.arange(1024)] = 1
    with torch.no_grad():
        out = features(lit.view(1024, 3, 32, 32))
    assert out.shape[2:] == (side, side)
    seen = (out[:, 0, 2, 2] > 0).view(32, 32)
    assert seen.sum() == field**2
    rows, columns = seen.nonzero().unbind(1)
    assert int(rows.max() - rows.min()) + 1 == int(columns.max() - columns.min()) + 1 == field


def test_vgg_pools_five_times_to_one_place():
    for plan, filters in ((VGG16, 256), (VGG11, 512)):
        assert VGG(plan=plan).features(torch.zeros(1, 3, 32, 32)).shape == (1, filters, 1, 1)


@pytest.mark.parametrize("name", NETS)
def test_global_generator_is_untouched_and_seeds_decide(name):
    before = torch.get_rng_state()
    a, b, c = (NETS[name](seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert not torch.equal(a.head.weight, c.head.weight)
    assert all(torch.isfinite(t).all() for t in a.state_dict().values())


@pytest.mark.parametrize("init", ["xavier", "he", "torch", "torch-zero-bias"])
def test_norms_begin_with_scale_one_and_shift_zero(init):
    net = VGG(batch_norm=True, init=init)
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    assert len(norms) == 13
    for norm in norms:
        assert (norm.weight == 1).all()
        assert (norm.running_var == 1).all()
        assert not norm.bias.any()
        assert not norm.running_mean.any()
        assert norm.num_batches_tracked == 0
    biased = [m for m in net.modules() if isinstance(m, nn.Conv2d | nn.Linear) and m.bias is not None]
    assert biased == [net.head], "a convolution before a norm has no bias"
    assert bool(net.head.bias.any()) == (init in ("xavier", "torch"))


def test_a_trained_norm_begins_anew():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    net(torch.randn(8, 3, generator=torch.Generator().manual_seed(0)))
    net[1].weight.data.fill_(7)
    initialise(net, "he", 0)
    assert not net[1].running_mean.any()
    assert (net[1].weight == 1).all()


def test_xavier_biases_of_convolutions_and_linear_layers():
    """Variances 2 / (1 + 9 n) and 2 / (1 + n), pooled over many nets."""
    nets = [LeNet(seed=s) for s in range(30)]
    of_conv = torch.cat([net.features[3].bias.detach() for net in nets]) / (2 / (1 + 9 * 50)) ** 0.5
    of_hidden = torch.cat([net.hidden[0].bias.detach() for net in nets[:4]]) / (2 / (1 + 500)) ** 0.5
    for values in (of_conv, of_hidden):
        assert stats.kstest(values.numpy(), "norm").pvalue > 0.01


def test_he_keeps_the_scale_through_thirteen_layers():
    """What it is for: the mean square of the features is that of the input, where torch's default loses it."""
    x = torch.randn(8, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    convs_only = [step for step in VGG16 if step != "M"][:8]
    he, default = (VGG((3, 64, 64), 10, convs_only, init=init).features(x).square().mean() for init in ("he", "torch"))
    assert 0.2 < he < 2
    assert default < 1e-3


@pytest.mark.parametrize("name", NETS)
def test_dropout_is_in_training_only(name):
    net, x = NETS[name](), torch.ones(4, 3, 32, 32)
    with torch.random.fork_rng():
        first, second = net(x), net(x)
    assert torch.equal(first, second) == (name != "zenke")
    net.eval()
    assert torch.equal(net(x), net(x))


def test_zenke_has_the_documented_dropout():
    net, x = ZenkeNet(), torch.ones(64, 3, 32, 32)
    dropped = [(n, m.p) for n, m in net.named_modules() if isinstance(m, nn.Dropout)]
    assert dropped == [("features.5", 0.25), ("features.11", 0.25), ("hidden.2", 0.5)]
    assert not any(isinstance(m, nn.Dropout) and m.p for m in ZenkeNet(dropout=(0.0, 0.0)).modules())
    assert torch.equal(ZenkeNet(dropout=(0.0, 0.0))(x), net.eval()(x))


@pytest.mark.parametrize("shape", [(2, 1, 32, 32), (2, 3, 28, 28), (2, 3072), (3, 32, 32), (3072,)])
def test_wrong_images_are_rejected_with_both_shapes(shape):
    with pytest.raises(ValueError, match=re.escape(f"takes images of shape (3, 32, 32), got a batch of shape {shape}")):
        LeNet()(torch.zeros(shape))


@pytest.mark.parametrize(("net", "inputs"), [(VGG, (3, 28, 28)), (LeNet, (1, 8, 8)), (ZenkeNet, (3, 8, 8))])
def test_images_too_small_are_rejected_at_once(net, inputs):
    with pytest.raises(
        ValueError, match=re.escape(f"images of shape {inputs} are too small for a {net.__name__}: pad")
    ):
        net(inputs, 10)


@pytest.mark.parametrize("inputs", [(), (32, 32), (3, 0, 32), (-1, 32, 32), (1024,)])
def test_shapes_of_no_image_are_rejected(inputs):
    with pytest.raises(ValueError, match="takes images"):
        LeNet(inputs, 10)


def test_invalid_outputs_and_inits_are_rejected():
    with pytest.raises(ValueError, match="at least one output, got 0"):
        VGG(outputs=0)
    with pytest.raises(ValueError, match="init='best' is not known"):
        ZenkeNet(init="best")


@pytest.mark.parametrize("name", ["lenet", "zenke", "vgg16"])
def test_runs_under_vmap_over_networks(name):
    nets = [NETS[name](seed=s).eval() for s in range(2)]
    x = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    params, buffers = stack_module_state(nets)
    many = vmap(lambda p, b: functional_call(nets[0], (p, b), (x,)))(params, buffers)
    torch.testing.assert_close(many, torch.stack([net(x) for net in nets]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NETS)
def test_every_layer_moves_to_another_device(name):
    """All of a net moves: "meta" replaces a GPU, and rejects tensors of the CPU."""
    net = NETS[name]().to("meta")
    assert net(torch.empty(2, 3, 32, 32, device="meta")).device.type == "meta"


def test_other_shapes_and_own_nets():
    assert LeNet((1, 28, 28), 10)(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    assert VGG((3, 64, 64), 10, VGG16).head.in_features == 256 * 4
    own = ConvNet((1, 6, 6), 3, [conv(1, 2, 3), nn.ReLU()], widths=(5, 4), dropout=0.1)
    assert [type(m).__name__ for m in own.hidden] == ["Linear", "ReLU", "Dropout"] * 2
    assert own(torch.zeros(1, 1, 6, 6)).shape == (1, 3)


def test_own_layers_are_initialised_or_rejected():
    net = ConvNet((1, 8, 8), 3, [conv(1, 4, 3), nn.GroupNorm(2, 4, device="meta")])
    assert torch.equal(net.features[1].weight, torch.ones(4))
    assert torch.equal(net.features[1].bias, torch.zeros(4))
    with pytest.raises(ValueError, match="and no PReLU: build your own"):
        ConvNet((1, 8, 8), 3, [conv(1, 4, 3), nn.PReLU(device="meta")])
    with pytest.raises(ValueError, match='on the device "meta"'):
        ConvNet((1, 8, 8), 3, [conv(1, 4, 3), nn.GroupNorm(2, 4)])


def test_the_hidden_layer_of_lenet_is_linear_unless_asked():
    assert [type(m).__name__ for m in LeNet().hidden] == ["Linear"]
    assert [type(m).__name__ for m in LeNet(relu=True).hidden] == ["Linear", "ReLU"]
    assert [type(m).__name__ for m in build_net("lenet-relu", (3, 32, 32), 10).hidden] == ["Linear", "ReLU"]
