"""VCL and BBB: exact posteriors of a Gaussian mean, the closed-form KL, the multi-head prior switch."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

from bgd.methods import BBB, VCL, Gaussian, Outputs, create
from bgd.methods.common.mean_field import MeanField
from bgd.scenarios.heads import Heads

ONE = Heads(1, ((0,),))


def fit(learner, y, steps=1200) -> tuple[float, float]:
    """Train on the whole of y; the mean and std averaged over the last third of the steps (Adam keeps jittering)."""
    x = torch.ones(len(y), 1, dtype=y.dtype)
    means, stds = [], []
    for i in range(steps):
        learner.observe(x, y)
        if i > 2 * steps // 3:
            means.append(learner.net.weight.item())
            stds.append(float(learner.posterior.std()["weight"]))
    return sum(means) / len(means), sum(stds) / len(stds)


def gaussian_mean(cls, sampling, **settings):
    net = nn.Linear(1, 1, bias=False).double()
    nn.init.constant_(net.weight, 0.3)
    outputs = Outputs(ONE, likelihood=Gaussian())
    return cls(net, outputs, lr=0.01, std_init=0.2, prior_std=0.5, sampling=sampling, train_samples=4, **settings)


@pytest.mark.parametrize("sampling", ["weights", "local"])
def test_bbb_recovers_the_posterior_of_a_gaussian_mean(sampling):
    y = torch.randn(20, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 1
    mean, std = fit(gaussian_mean(BBB, sampling, train_size=20), y)
    precision = 1 / 0.5**2 + 20
    # Local noise is sampled per sample: it has its own, smaller expectation error, and the same fixed point
    assert std == pytest.approx(precision**-0.5, rel=0.04)
    assert mean == pytest.approx(float(y.sum()) / precision, abs=0.03)


@pytest.mark.parametrize("sampling", ["weights", "local"])
def test_vcl_recovers_it_after_each_task(sampling):
    g = torch.Generator().manual_seed(0)
    tasks = [torch.randn(n, 1, generator=g, dtype=torch.float64) + 1 for n in (10, 30)]
    learner = gaussian_mean(VCL, sampling, train_size=[10, 30])
    precision, total = 1 / 0.5**2, 0.0
    for y in tasks:
        mean, std = fit(learner, y)
        learner.end_task()
        precision, total = precision + len(y), total + float(y.sum())
        assert std == pytest.approx(precision**-0.5, rel=0.05)
        assert mean == pytest.approx(total / precision, abs=0.03)


def test_bbb_with_bgds_prior_starts_on_it():
    net = nn.Linear(3, 2)
    learner = BBB(net, Outputs(Heads(2, ((0, 1),))), train_size=10, std_init=0.05)
    assert learner.posterior.kl() == pytest.approx(0, abs=1e-5)


def random_posterior() -> MeanField:
    q = MeanField(nn.Linear(3, 2).double(), std_init=0.3, prior_std=0.7)
    g = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name in q.mean:
            q.log_std[name].add_(torch.randn(q.log_std[name].shape, generator=g))
            q.prior_mean[name] = torch.randn(q.mean[name].shape, generator=g, dtype=torch.float64)
    return q


def test_kl_and_its_gradient_equal_torchs_own():
    q = random_posterior()
    total = sum(
        kl_divergence(Normal(m, q.log_std[n].exp()), Normal(q.prior_mean[n], q.prior_std[n])).sum()
        for n, m in q.mean.items()
    )
    assert q.kl() == pytest.approx(total.item(), rel=1e-12)
    parameters = [*q.mean.values(), *q.log_std.values()]
    expected = torch.autograd.grad(total, parameters)
    for p in parameters:
        p.grad = torch.ones_like(p)
    q.add_kl_gradient(0.25)
    for p, g in zip(parameters, expected, strict=True):
        assert torch.allclose(p.grad, 1 + 0.25 * g, rtol=1e-12)


def test_local_noise_has_the_moments_of_weight_noise():
    net = nn.Sequential(nn.Linear(4, 3)).double()
    learner = BBB(net, Outputs(Heads(3, ((0, 1, 2),))), train_size=10, std_init=0.4, sampling="local")
    with torch.no_grad():
        learner.posterior.log_std["0.bias"].fill_(-2.0)
    x = torch.randn(1, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    samples = learner.predict_samples(x.repeat(20000, 1), 1)[0]
    std = (0.4**2 * (x**2).sum() + torch.tensor(-4.0).exp()).sqrt()
    assert torch.allclose(samples.std(0), std.expand(3), rtol=0.02)
    assert torch.allclose(samples.mean(0), net(x)[0], atol=float(4 * std / 20000**0.5))


def test_a_bias_learns_its_std_beside_a_frozen_weight():
    net = nn.Sequential(nn.Linear(4, 3))
    net[0].weight.requires_grad_(False)
    learner = BBB(net, Outputs(Heads(3, ((0, 1, 2),))), train_size=10, std_init=0.4, lr=0.01, sampling="local")
    x = torch.ones(20000, 4)
    samples = learner.predict_samples(x, 1)[0]
    assert torch.allclose(samples.std(0), torch.tensor(0.4), rtol=0.03)
    learner.observe(x[:8], torch.zeros(8, dtype=torch.int64))
    assert not torch.any(learner.posterior.std()["0.bias"] == 0.4)


def test_local_sampling_rejects_layers_other_than_linear():
    net = nn.Sequential(nn.Conv1d(1, 1, 1), nn.Flatten(), nn.Linear(4, 2))
    with pytest.raises(ValueError, match=r"'0.weight' belongs to Conv1d: use sampling='weights'"):
        BBB(net, Outputs(Heads(2, ((0, 1),))), train_size=10, sampling="local")


@pytest.mark.parametrize("sampling", ["weights", "local"])
def test_heads_of_future_tasks_keep_posterior_and_prior(sampling, scenarios, heads_of, make_net, make_batches):
    scenario = scenarios["task"]
    net = make_net(6)
    start = net[4].weight.detach().clone()
    learner = create("vcl", net, heads_of(scenario), scenario, train_size=96, lr=0.01, sampling=sampling)
    for batch in make_batches(0, scenario):
        learner.observe(*batch)
    learner.end_task()
    q = learner.posterior
    used, fresh = slice(0, 2), slice(2, 6)
    assert torch.equal(net[4].weight[fresh], start[fresh])
    assert q.prior_mean["4.weight"][fresh].eq(0).all()
    assert q.prior_std["4.weight"][fresh].eq(1).all()
    assert torch.allclose(q.std()["4.weight"][fresh], torch.tensor(0.05))
    alive = learner.used["4.weight"][used]
    assert alive.any()
    assert torch.equal(q.prior_mean["4.weight"][used][alive], net[4].weight[used][alive])
    assert torch.equal(q.prior_std["1.weight"], torch.where(learner.used["1.weight"], q.std()["1.weight"], 1.0))
    for batch in make_batches(1, scenario):
        learner.observe(*batch)
    assert not torch.equal(net[4].weight[2:4], start[2:4])  # the second head is trained
    assert torch.equal(net[4].weight[4:], start[4:])


def test_averaged_predictions_are_probabilities(scenarios, heads_of, make_net, make_batches):
    scenario = scenarios["task"]
    learner = create("vcl", make_net(6), heads_of(scenario), scenario, train_size=96, std_init=0.5, test_samples=7)
    x = make_batches(0, scenario)[0].x
    p = learner.predict(x, 1).exp()
    assert torch.allclose(p.sum(1), torch.ones(len(x)))
    samples = learner.predict_samples(x, 7, 1)
    assert torch.allclose(p, samples.softmax(2).mean(0), atol=1e-6)
    assert samples.std(0)[:, 2:4].min() > 0
