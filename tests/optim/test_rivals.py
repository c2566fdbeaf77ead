"""The rivals without a posterior: UPGD and continual backprop, against their equations."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgd.optim import UPGD, ContinualBackprop


def network() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def train(optimizer: torch.optim.Optimizer, model: nn.Module, batches: int, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(batches):
        x, y = torch.randn(8, 6, generator=generator), torch.randint(3, (8,), generator=generator)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


MAKERS: dict[str, Callable[[nn.Module], Any]] = {
    "UPGD": lambda model: UPGD(model.parameters(), lr=0.1, noise_std=0.01, seed=1),
    "continual backprop": lambda model: ContinualBackprop(model, lr=0.1, replacement_rate=0.1, maturity=3, seed=1),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_it_resumes_bit_for_bit_from_plain_data(make):
    whole, resumed = network(), network()
    optimizer, other = make(whole), make(resumed)
    train(optimizer, whole, 7)
    train(other, resumed, 2, seed=5)
    file = io.BytesIO()
    torch.save((whole.state_dict(), optimizer.state_dict()), file)
    file.seek(0)
    weights, state = torch.load(file, weights_only=True)
    resumed.load_state_dict(weights)
    other.load_state_dict(state)
    before = torch.get_rng_state()
    for model, one in ((whole, optimizer), (resumed, other)):
        train(one, model, 9, seed=7)
    assert torch.equal(before, torch.get_rng_state())
    assert all(map(torch.equal, whole.parameters(), resumed.parameters()))


def test_upgd_is_its_equation():
    w, v = (nn.Parameter(torch.tensor(values, dtype=torch.float64)) for values in ([1.0, -2.0, 3.0], [0.5]))
    expected, utilities = [w.detach().clone(), v.detach().clone()], [torch.zeros(3), torch.zeros(1)]
    optimizer = UPGD([w, v], lr=0.1, noise_std=0.0, utility_decay=0.9, weight_decay=0.2)
    for t in range(1, 5):
        gradients = [torch.tensor([0.3, 1.0 * t, -2.0]).double(), torch.tensor([-1.0]).double()]
        w.grad, v.grad = (g.clone() for g in gradients)
        optimizer.step()
        utilities = [0.9 * u - 0.1 * g * p for u, g, p in zip(utilities, gradients, expected, strict=True)]
        largest = max(float(u.max()) for u in utilities)
        expected = [
            (1 - 0.1 * 0.2) * p - 0.2 * g * (1 - torch.sigmoid(u / largest))
            for p, g, u in zip(expected, gradients, utilities, strict=True)
        ]
    torch.testing.assert_close([w.detach(), v.detach()], expected, rtol=1e-12, atol=0)


def test_upgd_spares_nothing_where_nothing_is_of_use():
    w = nn.Parameter(torch.tensor([1.0, 2.0]))
    w.grad = torch.tensor([1.0, 1.0])  # both weights would better be gone
    UPGD([w], lr=0.1, noise_std=0.0).step()
    torch.testing.assert_close(w.detach(), torch.tensor([0.8, 1.8]))


def test_the_noise_of_upgd_has_its_std():
    w = nn.Parameter(torch.zeros(20_000))
    w.grad = torch.zeros(20_000)
    UPGD([w], lr=0.5, noise_std=0.3, seed=2).step()  # U = 0: half of every step
    assert float(w.detach().std()) == pytest.approx(0.15, rel=0.02)


def test_continual_backprop_without_replacement_is_sgd():
    models = [network(), network()]
    optimizers = [
        ContinualBackprop(models[0], lr=0.1, replacement_rate=0.0, weight_decay=0.01),
        torch.optim.SGD(models[1].parameters(), lr=0.1, weight_decay=0.01),
    ]
    for optimizer, model in zip(optimizers, models, strict=True):
        train(optimizer, model, 5)
    torch.testing.assert_close(list(models[0].parameters()), list(models[1].parameters()))


def test_the_unit_of_least_use_is_replaced_and_what_the_network_computes_hardly_changes():
    model = network()
    with torch.no_grad():
        model[2].weight[:, 5] = 1e-6
    optimizer = ContinualBackprop(model, lr=0.0, replacement_rate=0.126, maturity=4, seed=1)
    x = torch.randn(16, 6)

    def step() -> Tensor:
        out: Tensor = model(x)
        out.sum().backward()
        optimizer.step()
        return out.detach()

    before = [p.detach().clone() for p in model.parameters()]
    outputs = [step() for _ in range(5)]  # the fifth finds units older than maturity: 8 x 0.126 is one
    changed = [int(i) for i in range(8) if not torch.equal(model[0].weight[i], before[0][i])]
    assert changed == [5]
    assert bool((model[2].weight[:, 5] == 0).all())
    assert model[0].bias[5] == 0
    assert float(model[0].weight[5].detach().abs().max()) <= float(optimizer.state[model[2].weight]["spread"])
    torch.testing.assert_close(step(), outputs[0], rtol=1e-4, atol=1e-4)
    assert optimizer.state[model[2].weight]["age"][5] == 1  # safe until it is mature


def test_frozen_layers_keep_their_units():
    model = network()
    model[0].requires_grad_(False)
    before = [p.detach().clone() for p in model[0].parameters()]
    train(ContinualBackprop(model, replacement_rate=0.9, maturity=0), model, 5)
    assert all(map(torch.equal, before, model[0].parameters()))


def test_a_copy_of_the_model_is_not_the_optimizers():
    model = network()
    optimizer = ContinualBackprop(model)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other(torch.ones(2, 6)).sum().backward()
        assert not optimizer._outputs
    model(torch.ones(2, 6))
    assert optimizer._outputs
    with pytest.raises(TypeError, match="use its state_dict"):
        copy.deepcopy(optimizer)


def test_what_a_replaced_unit_gave_on_average_goes_to_the_biases():
    model = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias.fill_(2.0)  # a unit that always puts out 2
    before = model(torch.ones(1, 2)).detach()
    optimizer = ContinualBackprop(model, lr=0.0, replacement_rate=0.999, maturity=0, seed=1)
    for _ in range(2):
        model(torch.ones(4, 2)).sum().backward()
        optimizer.step()
    assert model[1].weight.item() == 0
    torch.testing.assert_close(model(torch.ones(1, 2)).detach(), before)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UPGD([nn.Parameter(torch.zeros(1))], lr=-1.0), "lr must be a finite number from 0, got -1.0"),
        (lambda: UPGD([nn.Parameter(torch.zeros(1))], utility_decay=1.0), "utility_decay .* got 1.0"),
        (lambda: ContinualBackprop(network(), replacement_rate=2.0), "replacement_rate .* got 2.0"),
        (lambda: ContinualBackprop(nn.Linear(2, 2)), "Linear has no hidden units"),
    ],
)
def test_a_bad_argument_is_named_with_its_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()
