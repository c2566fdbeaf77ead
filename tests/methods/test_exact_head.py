"""The learner exact-head: what it adds to the contract of all learners."""

import pytest
import torch
from sklearn.linear_model import Ridge
from torch import nn

from bgd.methods import MethodError, create, settings_of
from bgd.scenarios import scenario, shared_heads
from bgd.scenarios.types import Knowledge

HEADS = shared_heads(tasks=2, classes=4)


def problem(n=400, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(4, (n,), generator=generator)
    angle = y * torch.pi / 2 + 0.3 * torch.randn(n, generator=generator)
    return torch.stack([angle.cos(), angle.sin()], 1), y


def learner(net=None, **settings):
    net = nn.Linear(2, 4) if net is None else net
    return create("exact-head", net, HEADS, scenario("continuous task-agnostic"), **settings)


def accuracy(model, x, y):
    return (model.predict(x).argmax(1) == y).float().mean()


@pytest.mark.parametrize("features", ["fourier", "relu"])
def test_class_by_class_is_as_good_as_all_at_once(features):
    x, y = problem()
    order = y.argsort()
    one_by_one, mixed = learner(features=features, units=100), learner(features=features, units=100)
    for rows in order.split(20):
        one_by_one.observe(x[rows], y[rows])
    for rows in torch.arange(400).split(20):
        mixed.observe(x[rows], y[rows])
    test = problem(seed=1)
    assert accuracy(one_by_one, *test) > 0.97
    assert abs(accuracy(one_by_one, *test) - accuracy(mixed, *test)) < 0.01


def test_it_is_ridge_regression_to_one_hot_labels():
    x, y = problem()
    model = learner(features="identity", ridge=0.5, precision="float64")
    for rows in torch.arange(400).split(40):
        model.observe(x[rows], y[rows])
    scale = model.exact.solution().features.scale
    phi = torch.cat([x * scale, torch.ones(400, 1)], 1).numpy()
    expected = Ridge(alpha=0.5, fit_intercept=False).fit(phi, nn.functional.one_hot(y).numpy()).predict(phi)
    assert torch.equal(model.predict(x).argmax(1), torch.from_numpy(expected).argmax(1))


def test_probabilities_are_better_than_chance_and_unseen_classes_come_last():
    x, y = problem()
    model = learner(units=100)
    assert model.observe(x[y < 2], y[y < 2]) == pytest.approx(torch.tensor(4.0).log().item())
    scores = model.predict(x)
    assert (scores.argmax(1) < 2).all()
    model.observe(x[y >= 2], y[y >= 2])
    assert nn.functional.cross_entropy(model.predict(x), y) < 0.5


def test_the_network_that_bgd_trains_beneath_learns_and_its_past_fades():
    x, y = problem()
    net = nn.Sequential(nn.Linear(2, 30), nn.ReLU(), nn.Linear(30, 4))
    before = net[0].weight.detach().clone()
    model = learner(net, features="trained", discount=0.99)
    for _ in range(3):
        for rows in torch.arange(400).split(20):
            model.observe(x[rows], y[rows])
    assert not torch.equal(net[0].weight, before)
    assert model.exact.known.sums.examples < 101  # 1 / (1 - discount)
    assert accuracy(model, *problem(seed=1)) > 0.95
    with pytest.raises(MethodError, match="use a discount below 1"):
        learner(net, features="trained", discount=1)


def test_a_network_that_is_not_trained_stays_as_it_was():
    net = nn.Sequential(nn.Linear(2, 60), nn.ReLU(), nn.Linear(60, 4))
    before = [p.detach().clone() for p in net.parameters()]
    x, y = problem()
    model = learner(net, features="net")
    model.observe(x, y)
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    assert accuracy(model, *problem(seed=1)) > 0.9


def test_mirrored_images_are_the_same_to_it():
    images = torch.rand(60, 1, 10, 10, generator=torch.Generator().manual_seed(0))
    y = (images[:, 0, :5].mean((1, 2)) > images[:, 0, 5:].mean((1, 2))).long()
    model = learner(features="patches", units=10, size=3, mirror=True)
    model.observe(images, y)
    torch.testing.assert_close(model.predict(images), model.predict(images.flip(-1)), atol=1e-3, rtol=1e-3)


def test_a_regression_predicts_numbers():
    x = torch.linspace(-1, 1, 80)[:, None]
    model = create(
        "exact-head",
        nn.Linear(1, 1),
        shared_heads(1, 1),
        scenario("continuous task-agnostic"),
        likelihood="gaussian",
        features="identity",
        ridge=1e-4,
    )
    model.observe(x, 3 * x - 1)
    torch.testing.assert_close(model.predict(x), 3 * x - 1, atol=1e-3, rtol=0)


def test_it_needs_nothing_and_shows_its_settings():
    assert learner().needs == Knowledge.NOTHING
    assert {"features", "units", "ridge", "discount"} <= set(settings_of("exact-head"))
    with pytest.raises(ValueError, match="features='forier': choose one of"):
        learner(features="forier")
