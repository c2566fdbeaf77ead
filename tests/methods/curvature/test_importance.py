"""Fisher information and sensitivity, against gradients taken one sample at a time."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from bgd.methods.common.likelihoods import Gaussian
from bgd.methods.common.outputs import Outputs
from bgd.methods.curvature import gradient_powers
from bgd.methods.curvature.gradient_powers import sum_through_layers, sum_through_vmap
from bgd.methods.curvature.importance import fisher, sensitivity
from bgd.scenarios.heads import Heads
from bgd.scenarios.types import Batch

HEADS = Heads(4, ((0, 1), (2, 3)))


def mlp() -> nn.Module:
    torch_rng = torch.random.get_rng_state()
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 7, bias=False), nn.ReLU(), nn.Linear(7, 4))
    torch.random.set_rng_state(torch_rng)
    return net.double()


def data(n: int = 10) -> Batch:
    g = torch.Generator().manual_seed(1)
    return Batch(torch.randn(n, 6, generator=g, dtype=torch.float64), torch.randint(2, 4, (n,), generator=g), 1)


def split_batch(batch: Batch, size: int) -> list[Batch]:
    return [Batch(batch.x[i : i + size], batch.y[i : i + size], batch.task) for i in range(0, len(batch.x), size)]


def plain_fisher(net, batch, label, columns) -> list[torch.Tensor]:
    """The definition, one sample and one label at a time."""
    total = [torch.zeros_like(p) for p in net.parameters()]
    for x, y in zip(batch.x, batch.y, strict=True):
        p = net(x[None])[0, columns].softmax(0).detach()
        labels = {"true": [(columns.index(int(y)), 1.0)], "predicted": [(int(p.argmax()), 1.0)]}
        for c, weight in labels.get(label, list(enumerate(p.tolist()))):
            net.zero_grad()
            F.cross_entropy(net(x[None])[:, columns], torch.tensor([c])).backward()
            for t, q in zip(total, net.parameters(), strict=True):
                t += weight * q.grad**2
    return [t / len(batch.x) for t in total]


@pytest.mark.parametrize("label", ["predicted", "true", "exact"])
@pytest.mark.parametrize(("over", "columns"), [("all", [0, 1, 2, 3]), ("task", [2, 3])])
def test_fisher_equals_its_definition(label, over, columns):
    net, batch = mlp(), data()
    found = fisher(net, Outputs(HEADS, over), [batch], label)
    for value, expected in zip(found.values(), plain_fisher(net, batch, label, columns), strict=True):
        assert torch.allclose(value, expected, rtol=1e-10, atol=1e-14)


def test_sampled_labels_average_to_the_exact_fisher():
    net, outputs, g = mlp(), Outputs(HEADS), torch.Generator().manual_seed(0)
    batch = data(4)
    many = Batch(batch.x.repeat(5000, 1), batch.y.repeat(5000), 1)
    sampled, exact = fisher(net, outputs, [many], "sampled", generator=g), fisher(net, outputs, [batch], "exact")
    for name in exact:
        assert (sampled[name] - exact[name]).norm() < 0.02 * exact[name].norm()


@pytest.mark.parametrize("measure", [lambda *a: fisher(*a), lambda *a: sensitivity(*a)])
@pytest.mark.parametrize("over", ["all", "task", "seen", "batch"])
def test_importance_does_not_depend_on_the_batch_size(measure, over):
    net, batch = mlp(), data()
    outputs = Outputs(HEADS, over)
    outputs.add_labels(batch.y)
    whole = measure(net, outputs, [batch])
    for size in (1, 3):
        parts = measure(net, outputs, split_batch(batch, size))
        for name in whole:
            assert torch.allclose(whole[name], parts[name], rtol=1e-10, atol=1e-14)
            assert whole[name].abs().sum() > 0


class Convolution(nn.Module):
    """Convolutions, evaluated batch norm, and a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2), nn.Linear(8, 4)
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return self.last(self.scale * self.norm(self.conv(x[:, None])).relu().flatten(1))


@pytest.mark.parametrize("power", [1, 2])
def test_layers_and_vmap_give_the_same_sums(power):
    net, x = mlp(), data().x
    net[2].weight.requires_grad_(False)  # frozen weights have no importance

    def vectors(scores):
        return torch.stack([scores, scores.cos()])

    fast, general = (sums(net, x, vectors, power) for sums in (sum_through_layers, sum_through_vmap))
    assert set(fast) == set(general) == {"0.weight", "0.bias", "4.weight", "4.bias"}
    for name in fast:
        assert torch.allclose(fast[name], general[name], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("chunk", [1, 2**22])
def test_layers_and_vmap_agree_on_convolutions(power, chunk, monkeypatch):
    monkeypatch.setattr(gradient_powers, "CHUNK_NUMBERS", chunk)
    net = nn.Sequential(
        nn.Conv2d(2, 3, 3, stride=2, padding=1),
        nn.Tanh(),
        nn.Conv2d(3, 4, (2, 1), dilation=2, bias=False),
        nn.Flatten(),
        nn.Linear(32, 4),
    ).double()
    x = torch.randn(5, 2, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    fast, general = (sums(net, x, lambda s: s[None], power) for sums in (sum_through_layers, sum_through_vmap))
    assert list(general) == ["0.weight", "0.bias", "2.weight", "4.weight", "4.bias"]
    for name in general:
        assert torch.allclose(fast[name], general[name], rtol=1e-10, atol=1e-14)


def test_vmap_works_in_chunks(monkeypatch):
    net, x = mlp(), data().x
    whole = sum_through_vmap(net, x, lambda s: s[None], 2)
    monkeypatch.setattr(gradient_powers, "CHUNK_NUMBERS", 3 * sum(p.numel() for p in net.parameters()))
    parts = sum_through_vmap(net, x, lambda s: s[None], 2)
    for name in whole:
        assert torch.allclose(whole[name], parts[name], rtol=1e-12)


@pytest.mark.parametrize("build", ["conv", "twice", "tied", "inplace", "three-d", "folded", "spectral-norm"])
def test_nets_that_the_layers_algorithm_does_not_support_use_vmap(build):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.last = nn.Linear(6, 6), nn.Linear(6, 4)
            if build == "tied":
                self.two = nn.Linear(6, 6)
                self.two.weight = self.one.weight
            if build == "spectral-norm":
                self.one = nn.utils.spectral_norm(self.one)

        def forward(self, x):
            if build == "inplace":
                return self.last(torch.relu_(self.one(x)))
            if build == "folded":  # parts of a sample as rows: six features seen in three orders
                parts = torch.stack([x, x.roll(1, dims=1), x.roll(2, dims=1)], dim=1)
                return self.last(self.one(parts.flatten(0, 1)).tanh().view(len(x), 3, 6).mean(dim=1))
            if build == "spectral-norm":
                return self.last(self.one(x).tanh())
            if build == "three-d":
                return self.last(self.one(x[:, None]).tanh())[:, 0]
            return self.last(getattr(self, "two", self.one)(self.one(x).tanh()))

    net = (Convolution() if build == "conv" else Twice()).double()
    net.eval()
    batch, outputs = data(), Outputs(HEADS)
    assert sum_through_layers(net, batch.x, lambda s: s[None], 2) is None
    for value, expected in zip(
        fisher(net, outputs, [batch], "true").values(), plain_fisher(net, batch, "true", [0, 1, 2, 3]), strict=True
    ):
        assert torch.allclose(value, expected, rtol=1e-8, atol=1e-12)


def test_the_mini_batch_variant_is_that_of_hsu():
    net, outputs = mlp(), Outputs(HEADS)
    batches = split_batch(data(10), 4)  # sizes 4, 4, 2
    found = fisher(net, outputs, batches, "predicted", "batch")
    expected = [torch.zeros_like(p) for p in net.parameters()]
    for b in batches:
        net.zero_grad()
        scores = net(b.x)
        F.cross_entropy(scores, scores.argmax(1)).backward()
        for e, p in zip(expected, net.parameters(), strict=True):
            e += p.grad**2 * len(b.x) / len(batches)
    for value, e in zip(found.values(), expected, strict=True):
        assert torch.allclose(value, e, rtol=1e-10, atol=1e-14)


def test_mas_on_a_linear_map_equals_its_closed_form():
    # f = W x: d mean_o(f_o^2) / dW_oi = 2 f_o x_i / O, so Omega = 2/O mean_b |f_o| |x_i|
    net, batch = nn.Linear(6, 4, bias=False).double(), data()
    f = batch.x @ net.weight.detach().T
    omega = sensitivity(net, Outputs(HEADS), [batch])["weight"]
    assert torch.allclose(omega, 2 / 4 * f.abs().T @ batch.x.abs() / len(f), rtol=1e-12)
    head = sensitivity(net, Outputs(HEADS, "task"), [batch])["weight"]
    assert torch.allclose(head[2:], 2 / 2 * f[:, 2:].abs().T @ batch.x.abs() / len(f), rtol=1e-12)
    assert head[:2].eq(0).all()
    batches = split_batch(batch, 4)
    hsu = sum((2 / 4 * (b.x @ net.weight.detach().T).T @ b.x / len(b.x)).abs() for b in batches) / len(batches)
    found = sensitivity(net, Outputs(HEADS), batches, over="batch")["weight"]
    assert torch.allclose(found, hsu, rtol=1e-12)


def test_fisher_of_a_gaussian_is_the_second_moment_of_the_input():
    net, batch = nn.Linear(6, 1, bias=False).double(), data()
    outputs = Outputs(Heads(1, ((0,),)), likelihood=Gaussian(std=0.5))
    exact = fisher(net, outputs, [Batch(batch.x, batch.y[:, None].double())], "exact")["weight"]
    assert torch.allclose(exact[0], (batch.x**2).mean(0) / 0.25, rtol=1e-12)
    many = Batch(batch.x.repeat(3000, 1), batch.y.repeat(3000)[:, None].double())
    sampled = fisher(net, outputs, [many], "sampled", generator=torch.Generator().manual_seed(0))["weight"]
    assert torch.allclose(sampled, exact, rtol=0.05)
    with pytest.raises(ValueError, match="would be 0; choose true, sampled or exact"):
        fisher(net, outputs, [batch], "predicted")


def test_dropout_is_off_and_the_mode_is_restored():
    net = nn.Sequential(mlp(), nn.Dropout(0.5)).train()
    batch = data()
    one, two = (fisher(net, Outputs(HEADS), [batch]) for _ in range(2))
    assert all(torch.equal(one[n], two[n]) for n in one)
    assert net.training


def test_a_layer_in_evaluation_mode_stays_in_it():
    net = nn.Sequential(mlp().train(), nn.Dropout(0.5).eval())
    fisher(net, Outputs(HEADS), [data()])
    assert [module.training for module in net] == [True, False]


@pytest.mark.parametrize("settings", [{"label": "exact", "over": "batch"}, {"over": "epoch"}])
def test_invalid_choices_are_rejected(settings):
    with pytest.raises(ValueError, match=r"over='sample'|choose one of sample, batch"):
        fisher(mlp(), Outputs(HEADS), [data()], **settings)
    with pytest.raises(ValueError, match="no data to measure importance on"):
        fisher(mlp(), Outputs(HEADS), [])


class Functional(nn.Module):
    """Uses the weights of its layer a second time, outside of the layer's call."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 4)

    def forward(self, x):
        return F.linear(F.linear(self.layer(x).tanh(), self.layer.weight.T), self.layer.weight)


def test_weights_that_are_used_functionally_too_count_with_all_their_uses():
    torch.manual_seed(3)
    net, batch = Functional().double(), data()
    assert sum_through_layers(net, batch.x, lambda scores: scores[None], power=2) is None
    found = fisher(net, Outputs(HEADS, over="all"), [batch], "true", "sample")
    expected = plain_fisher(net, batch, "true", [0, 1, 2, 3])
    torch.testing.assert_close(list(found.values()), expected)
