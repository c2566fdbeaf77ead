"""Products in bfloat16, and nothing else."""

import copy

import pytest
import torch
from shared_bgd import shared_bgd
from torch import nn

from bgd.methods import METHODS, create
from bgd.methods.common.outputs import Outputs
from bgd.methods.curvature.importance import fisher, sensitivity
from bgd.methods.curvature.recording import recording
from bgd.nets import MLP, VGG, InBfloat16, LeNet
from bgd.runs.build import build_net
from bgd.runs.config import NetConfig
from bgd.scenarios import Batch, scenario, shared_heads

INPUTS, OUTPUTS = (1, 16, 16), 3


def data(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(12, *INPUTS, generator=generator), torch.randint(OUTPUTS, (12,), generator=generator)


def nets():
    for net in (MLP(INPUTS, OUTPUTS, (20, 20), seed=1), LeNet(INPUTS, OUTPUTS, seed=1)):
        yield net, InBfloat16(net)


def rounded(t):
    return t.bfloat16().float()


def test_a_linear_layer_rounds_its_factors_and_its_sums():
    layer = nn.Linear(256, 3)
    x = data()[0].flatten(1)
    exact = rounded(x).double() @ rounded(layer.weight).double().T + rounded(layer.bias).double()
    out = InBfloat16(layer)(x)
    assert torch.equal(out, rounded(out))
    torch.testing.assert_close(out.double(), exact, rtol=2**-8, atol=2**-7)
    assert not torch.equal(out, layer(x))


def test_weights_gradients_and_scores_stay_float32():
    x, y = data()
    for plain, net in nets():
        nn.functional.cross_entropy(net(x), y).backward()
        ours = [p.grad.clone() for p in net.parameters()]
        plain.zero_grad()
        nn.functional.cross_entropy(plain(x), y).backward()
        for g, p in zip(ours, plain.parameters(), strict=True):
            assert g.dtype == p.dtype == torch.float32
            # pooling may take another pixel where two are nearly equal
            assert 0 < (g - p.grad).norm() < 0.2 * p.grad.norm()


@pytest.mark.parametrize("measure", [fisher, sensitivity])
def test_importance_is_summed_in_float32(measure):
    outputs, batches = Outputs(shared_heads(1, OUTPUTS)), [Batch(*data())]
    for plain, net in nets():
        exact, ours = measure(plain, outputs, batches), measure(net, outputs, batches)
        for name, value in exact.items():
            assert ours[f"net.{name}"].dtype == torch.float32
            assert (ours[f"net.{name}"] - value).norm() < 0.1 * value.norm()


def test_kronecker_factors_are_summed_in_float32():
    x, y = data()
    vectors = nn.functional.one_hot(y, OUTPUTS).float()[None]
    for plain, net in nets():
        blocks = []
        for each in (plain, net):
            with recording(each) as record:
                scores = each(x)
            blocks.append(record.curvature(scores, vectors))
        for name, block in blocks[0].items():
            for factor in ("a", "g"):
                exact, ours = getattr(block, factor), getattr(blocks[1][f"net.{name}"], factor)
                assert ours.dtype == torch.float32
                assert (ours - exact).norm() < 0.1 * exact.norm()


@pytest.mark.parametrize("net", ["mlp", "vgg with BatchNorm"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_with_it(method, net):
    settings = {"train_size": 12} if method in ("vcl", "bbb", "laplace", "noisy-adam", "noisy-kfac") else {}
    if method == "exact-head":
        settings = {"features": "trained"}  # with others the network does not learn
    heads, rules = shared_heads(2, OUTPUTS), scenario("domain")
    plain = MLP(INPUTS, OUTPUTS, (20,), seed=1) if net == "mlp" else VGG(INPUTS, OUTPUTS, (4, "M", 6), batch_norm=True)
    if method == "continual-backprop" and net != "mlp":
        with pytest.raises(ValueError, match="InBfloat16 has no hidden units between two linear layers"):
            create(method, InBfloat16(plain), heads, rules)
        return
    learner = create(method, InBfloat16(plain), heads, rules, **settings)
    before = copy.deepcopy(list(learner.net.parameters()))
    batch = Batch(*data())
    losses = [learner.observe(batch.x, batch.y) for _ in range(2)]
    learner.end_task([batch])
    losses += [learner.observe(batch.x, batch.y) for _ in range(2)]
    assert torch.tensor(losses).isfinite().all()
    assert any(not torch.equal(p, q) for p, q in zip(before, learner.net.parameters(), strict=True))
    assert learner.predict(batch.x).dtype == torch.float32


def test_all_networks_at_once_are_the_loop():
    """The noise is the same; the order of sums is not, and bfloat16 shows it in the third digit."""
    x, y = data()
    stds = []
    for batched in (True, False):
        net = InBfloat16(MLP(INPUTS, OUTPUTS, (20,), seed=1))
        optimizer = shared_bgd(net.parameters(), std_init=0.05, mc_samples=4, seed=3)

        def objective(net, x, y):
            return nn.functional.cross_entropy(net(x), y, reduction="sum")

        def closure(net=net, optimizer=optimizer):
            optimizer.zero_grad()
            loss = objective(net, x, y)
            loss.backward()
            return loss

        if batched:
            optimizer.batched(net, objective, compile=False, chunk_size=2)(x, y)
        else:
            optimizer.step(closure)
        stds.append(torch.cat([optimizer.state[p]["std"].flatten() for p in net.parameters()]))
    assert not torch.equal(stds[0], torch.full_like(stds[0], 0.05))
    torch.testing.assert_close(stds[0], stds[1], rtol=1e-2, atol=0)


def test_a_configuration_can_request_it():
    plain = build_net(NetConfig(), INPUTS, OUTPUTS, seed=4)
    net = build_net(NetConfig(precision="bfloat16"), INPUTS, OUTPUTS, seed=4)
    assert isinstance(net, InBfloat16)
    assert all(torch.equal(p, q) for p, q in zip(plain.parameters(), net.parameters(), strict=True))
