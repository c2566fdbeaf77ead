"""Kronecker factors against gradients taken one sample at a time, exact curvatures, and curvlinops."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgd.methods.common.likelihoods import Categorical, Gaussian
from bgd.methods.common.types import MethodError
from bgd.methods.curvature.blocks import Diagonal, Kronecker
from bgd.methods.curvature.layers import find_layers, from_matrix, to_matrix
from bgd.methods.curvature.recording import recording

LABELS = ["true", "sampled", "exact", "predicted"]


def conv_net(inplace: bool = False) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1),
        nn.ReLU(inplace=inplace),
        nn.MaxPool2d(2),
        nn.Conv2d(3, 4, 2, stride=2, bias=False),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(4, 3),
    ).double()


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(32, 6), nn.Tanh(), nn.Linear(6, 5, bias=False), nn.ReLU(), nn.Linear(5, 3)
    ).double()


def images(n: int = 6) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(1)
    return torch.randn(n, 2, 4, 4, generator=g, dtype=torch.float64), torch.randint(3, (n,), generator=g)


def curvature(net, x, y, label="true", likelihood=None, seed=0):
    with recording(net) as record:
        scores = net(x)
    generator = torch.Generator().manual_seed(seed)
    vectors = (likelihood or Categorical()).score_gradients(scores.detach(), y, label, generator)
    return record.curvature(scores, vectors)


def factors_by_hand(net: nn.Module, x: Tensor, y: Tensor) -> dict[str, Kronecker]:
    """One sample at a time; a convolution one position at a time, as a dot product with its patch."""
    layers = find_layers(net)
    total: dict[str, list[Tensor]] = {name: [0.0, 0.0] for name in layers}
    for b in range(len(x)):
        seen = {}
        hooks = [
            layer.register_forward_hook(lambda _l, args, out, n=n, seen=seen: seen.__setitem__(n, (args[0], out)))
            for n, layer in layers.items()
        ]
        loss = F.cross_entropy(net(x[b : b + 1]), y[b : b + 1], reduction="sum")
        for hook in hooks:
            hook.remove()
        for name, layer in layers.items():
            a, out = seen[name]
            (g,) = torch.autograd.grad(loss, out, retain_graph=True)
            if isinstance(layer, nn.Linear):
                columns, gs = [a[0]], [g[0]]
            else:
                p, k, s = layer.padding[0], layer.kernel_size[0], layer.stride[0]
                padded = F.pad(a[0], (p, p, p, p))
                positions = [(i, j) for i in range(g.shape[2]) for j in range(g.shape[3])]
                columns = [padded[:, i * s : i * s + k, j * s : j * s + k].flatten() for i, j in positions]
                gs = [g[0, :, i, j] for i, j in positions]
            if layer.bias is not None:
                columns = [torch.cat([c, torch.ones(1, dtype=c.dtype)]) for c in columns]
            total[name][0] += sum(torch.outer(c, c) for c in columns).detach() / len(x)
            total[name][1] += sum(torch.outer(v, v) for v in gs) / len(gs) / len(x)
    return {name: Kronecker(*factors) for name, factors in total.items()}


@pytest.mark.parametrize("make", [mlp, conv_net])
def test_factors_are_those_of_one_sample_at_a_time(make):
    net, (x, y) = make(), images()
    expected = factors_by_hand(net, x, y)
    for name, block in curvature(net, x, y).items():
        assert torch.allclose(block.a, expected[name].a, rtol=1e-12, atol=1e-14)
        assert torch.allclose(block.g, expected[name].g, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("label", "fisher_type"), [("true", "empirical"), ("exact", "type-2")])
@pytest.mark.parametrize("make", [mlp, conv_net])
def test_factors_make_the_same_curvature_as_curvlinops(make, label, fisher_type):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its dependencies use what torch has deprecated
        curvlinops = pytest.importorskip("curvlinops")
    net, (x, y) = make(), images()
    params = list(net.parameters())
    theirs = curvlinops.KFACLinearOperator(
        net,
        nn.CrossEntropyLoss(reduction="sum"),
        params,
        [(x, y)],
        fisher_type=fisher_type,
        separate_weight_and_bias=False,
        check_deterministic=False,
    )
    directions = [torch.randn_like(p) for p in params]
    expected = dict(zip(map(id, params), theirs @ directions, strict=True))
    given = dict(zip(map(id, params), directions, strict=True))
    for name, block in curvature(net, x, y, label).items():
        layer = net.get_submodule(name)
        ours = len(x) * block.times(to_matrix(layer, lambda p: given[id(p)]))
        for p, t in zip(layer.parameters(), from_matrix(layer, ours), strict=True):
            assert torch.allclose(t, expected[id(p)], rtol=1e-10, atol=1e-13)


def test_sampled_labels_average_to_the_fisher():
    net, (x, y) = mlp(), images(3)
    exact = curvature(net, x, y, "exact")
    samples = [curvature(net, x, y, "sampled", seed=s) for s in range(2000)]
    for name in exact:
        g = torch.stack([d[name].g for d in samples])
        assert ((g.mean(0) - exact[name].g).abs() < 5 * g.std(0) / len(samples) ** 0.5 + 1e-12).all()
        assert torch.equal(samples[0][name].a, exact[name].a)


@pytest.mark.parametrize("outputs", [1, 3])
def test_for_a_linear_layer_with_squared_error_the_product_is_the_exact_hessian(outputs):
    layer, std = nn.Linear(4, outputs).double(), 0.7
    x, y = torch.randn(9, 4).double(), torch.randn(9, outputs).double()
    block = curvature(layer, x, y, "exact", Gaussian(std))[""]

    def loss(flat: Tensor) -> Tensor:  # flat = vec(W | b) by columns
        w = flat.reshape(5, outputs).T
        return Gaussian(std).loss(x @ w[:, :4].T + w[:, 4], y).sum()

    hessian = torch.autograd.functional.hessian(loss, torch.zeros(5 * outputs).double())
    assert torch.allclose(9 * torch.kron(block.a, block.g), hessian, rtol=1e-12, atol=1e-12)


def test_two_by_two_by_hand():
    # x = 1 and 3, w = 0, b = 0, y = 2 and 1: g = f - y = -2 and -1
    layer = nn.Linear(1, 1).double()
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    x, y = torch.tensor([[1.0], [3.0]]).double(), torch.tensor([[2.0], [1.0]]).double()
    a, g = curvature(layer, x, y, "true", Gaussian())[""]
    assert a.tolist() == [[5.0, 2.0], [2.0, 1.0]]  # (1 + 9) / 2, (1 + 3) / 2, 1
    assert g.tolist() == [[2.5]]  # (4 + 1) / 2
    inverse = Kronecker(a, g).inverse()
    assert torch.allclose(inverse.times(torch.tensor([[1.0, 0.0]]).double()), torch.tensor([[0.4, -0.8]]).double())


@pytest.mark.parametrize("label", LABELS)
def test_the_recorded_pass_can_still_be_trained_on(label):
    net, (x, y) = conv_net(), images()
    with recording(net) as record:
        scores = net(x)
    record.curvature(scores, Categorical().score_gradients(scores.detach(), y, label, torch.Generator()))
    assert all(p.grad is None for p in net.parameters())
    F.cross_entropy(scores, y).backward()
    gradients = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    F.cross_entropy(net(x), y).backward()
    assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), gradients, strict=True))
    assert not any(m._forward_hooks for m in net.modules())


def test_an_activation_in_place_changes_nothing():
    torch.manual_seed(5)
    plain, (x, y) = conv_net(), images()
    inplace = conv_net(inplace=True)
    inplace.load_state_dict(plain.state_dict())
    expected = curvature(plain, x, y)
    for name, block in curvature(inplace, x, y).items():
        assert torch.equal(block.a, expected[name].a)
        assert torch.equal(block.g, expected[name].g)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_gets_the_diagonal_of_its_own_gradients(training):
    net = nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(27, 4), nn.BatchNorm1d(4))
    net = net.double().train(training)
    with torch.no_grad():
        for name in ("1", "4"):
            net.get_submodule(name).weight.uniform_(0.5, 1.5)
            net.get_submodule(name).running_mean.normal_()
    x, _ = images()
    y = torch.arange(6) % 4
    statistics = net[1].running_mean.clone()
    with recording(net) as record:
        scores = net(x)
    running = net[1].running_mean.clone()
    blocks = record.curvature(scores, Categorical().score_gradients(scores.detach(), y, "true"))
    assert torch.equal(net[1].running_mean, running)  # updated by the pass at most, not by the factors
    assert torch.equal(statistics, running) is not training
    # a copy of the weight and bias for each sample makes their gradients those of a sample
    for name, dims in (("1", 2), ("4", 0)):
        norm = net.get_submodule(name)
        weight, bias = (p.detach().expand(6, -1).clone().requires_grad_() for p in (norm.weight, norm.bias))
        index = int(name)
        h = net[:index](x)
        stats = (None, None) if training else (norm.running_mean, norm.running_var)
        h = F.batch_norm(h, *stats, training=training)
        shape = (6, -1, *[1] * dims)
        out = net[index + 1 :](weight.reshape(shape) * h + bias.reshape(shape))
        grads = torch.autograd.grad(F.cross_entropy(out, y, reduction="sum"), (weight, bias))
        assert isinstance(blocks[name], Diagonal)
        assert torch.allclose(blocks[name].d, torch.stack([g.square().mean(0) for g in grads], dim=1), rtol=1e-10)


def test_a_head_that_was_not_called_has_no_curvature():
    net = nn.ModuleDict({"first": nn.Linear(4, 2), "second": nn.Linear(4, 3), "norm": nn.BatchNorm1d(3)})
    x = torch.randn(5, 4)
    with recording(net) as record:
        scores = net["first"](x)
    blocks = record.curvature(scores, torch.ones(1, 5, 2))
    assert blocks["first"].g.abs().sum() > 0
    assert torch.equal(blocks["second"].a, torch.zeros(5, 5))
    assert torch.equal(blocks["second"].g, torch.zeros(3, 3))
    assert torch.equal(blocks["norm"].d, torch.zeros(3, 2))


def test_a_layer_that_is_called_twice_is_rejected():
    net = nn.Linear(2, 2)
    with pytest.raises(MethodError, match="called twice"), recording(net):
        net(net(torch.zeros(1, 2)))


def test_rows_that_are_no_samples_are_rejected():
    net, x = nn.Linear(2, 2), torch.ones(5, 3, 2)
    with recording(net) as record:
        scores = net(x.flatten(0, 1)).view(5, 3, 2).mean(dim=1)
    with pytest.raises(MethodError, match="15 rows for 5 samples"):
        record.curvature(scores, torch.ones(1, 5, 2))


class Functional(nn.Module):
    def __init__(self, also_called: bool) -> None:
        super().__init__()
        self.layer, self.also_called = nn.Linear(32, 3), also_called

    def forward(self, x):
        x = x.flatten(1)
        once = F.linear(x, self.layer.weight, self.layer.bias)
        return once + self.layer(x) if self.also_called else once


@pytest.mark.parametrize("also_called", [False, True])
def test_weights_that_are_used_functionally_are_rejected(also_called):
    with pytest.raises(MethodError, match=r"the weights of the layer 'layer' are used outside of its call"):
        curvature(Functional(also_called).double(), *images())
