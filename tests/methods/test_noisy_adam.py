"""Noisy Adam: its algorithm in numpy, the posterior of Gaussian regression, noise as a pure function of the step."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from bgd.methods import Gaussian, NoisyAdam, Outputs
from bgd.methods.curvature.noisy import standard_normals
from bgd.runs.evaluate import stds
from bgd.scenarios.heads import Heads

ONE = Heads(1, ((0,),))


def regression(features: int, **settings) -> NoisyAdam:
    net = nn.Linear(features, 1, bias=False).double()
    nn.init.constant_(net.weight, 0.3)
    return NoisyAdam(net, Outputs(ONE, likelihood=Gaussian()), **settings)


def data(n: int, features: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, features, generator=g, dtype=torch.float64)
    y = x.sum(1, keepdim=True) + torch.randn(n, 1, generator=g, dtype=torch.float64)
    return x, y


@pytest.mark.parametrize(("kl_weight", "std_init"), [(0.0, None), (0.7, None), (0.7, 0.05)])
def test_every_step_is_that_of_algorithm_1(kl_weight, std_init):
    """Against a loop written from the paper's lines alone; at lambda = 0 it is Adam without the square root."""
    lr, beta1, beta2, eta, extrinsic, size = 0.02, 0.8, 0.95, 0.5, 0.1, 40
    settings = {"lr": lr, "beta1": beta1, "beta2": beta2, "prior_variance": eta, "damping": extrinsic, "seed": 3}
    learner = regression(3, train_size=size, kl_weight=kl_weight, std_init=std_init, **settings)
    x, y = data(size, 3)

    mu, m, f = np.full(3, 0.3), np.zeros(3), np.zeros(3)
    intrinsic = kl_weight / (size * eta)
    start = kl_weight / size / std_init**2 - intrinsic if std_init and kl_weight else 0.0
    for k in range(12):
        part = slice(5 * k % size, 5 * k % size + 5)
        learner.observe(x[part], y[part])
        noise = standard_normals({"w": torch.zeros(1, 3, dtype=torch.float64)}, 3, 0, k)["w"].numpy()[0]
        variance = kl_weight / size / (f + start * beta2**k + intrinsic) if kl_weight else np.zeros(3)
        w = mu + np.sqrt(variance) * noise
        residual = y[part].numpy()[:, 0] - x[part].numpy() @ w
        gradient = x[part].numpy().T @ residual / 5  # of the mean log-likelihood
        m = beta1 * m + (1 - beta1) * (gradient - intrinsic * w)
        f = beta2 * f + (1 - beta2) * gradient**2
        mu = mu + lr * m / (1 - beta1 ** (k + 1)) / (f + intrinsic + extrinsic)
        np.testing.assert_allclose(learner.net.weight.detach().numpy()[0], mu, rtol=1e-10)


def test_without_noise_it_is_adam_with_f_for_its_root():
    """On a constant gradient both corrections are known: Adam moves by lr, Noisy Adam by lr g / (f + gamma)."""
    learner = regression(1, train_size=9, kl_weight=0.0, damping=1e-3, lr=1e-9, beta2=0.9)
    x, y = torch.ones(4, 1, dtype=torch.float64), torch.full((4, 1), 2.3, dtype=torch.float64)
    for k in range(1, 6):
        before = learner.net.weight.item()
        learner.observe(x, y)
        expected = 1e-9 * 2.0 / (4.0 * (1 - 0.9**k) + 1e-3)
        assert learner.net.weight.item() - before == pytest.approx(expected, rel=1e-6)
    assert torch.equal(learner.predict_samples(x, 2)[0], learner.predict(x))
    assert learner.std()["weight"].eq(0).all()


@pytest.mark.parametrize(("fisher", "batch_size"), [("gradient", 1), ("sample", 20)])
def test_its_posterior_is_that_of_gaussian_regression(fisher, batch_size):
    """Precision N x^2 + 1 / eta and the ridge mean; f = E[x^2 r^2] = E[x^2], as the residuals r have variance 1."""
    size, eta = 200, 0.02
    x, y = data(size, 1)
    x = x.sign()  # so that the Fisher is the same for every batch
    noise = torch.randn(size, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    y = x + (noise - noise.mean()) / noise.std(correction=0)
    learner = regression(
        1, train_size=size, lr=0.002, beta2=0.998, prior_variance=eta, damping=0, fisher=fisher, std_init=0.1
    )
    means, std = [], []
    order = torch.Generator().manual_seed(2)
    for k in range(4500):
        rows = torch.randint(size, (batch_size,), generator=order)
        learner.observe(x[rows], y[rows])
        if k >= 2500:
            means.append(learner.net.weight.item())
            std.append(learner.std()["weight"].item())
    precision = size + 1 / eta
    ridge = float((x * y).sum()) / precision
    # the sampled weights add posterior^2 and the distance to the ridge mean to E[r^2]
    residual = 1 + 1 / precision + (ridge - float((x * y).mean())) ** 2
    assert np.mean(std) == pytest.approx((size * residual + 1 / eta) ** -0.5, rel=0.05)
    assert np.mean(std) == pytest.approx(precision**-0.5, rel=0.07)
    assert np.mean(means) == pytest.approx(ridge, abs=0.03)


def test_the_fisher_of_samples_does_not_depend_on_the_batch_and_that_of_the_gradient_does():
    x, y = data(8, 2)
    f = {}
    for fisher in ("gradient", "sample"):
        learner = regression(2, train_size=8, fisher=fisher, kl_weight=0.0)
        learner.observe(x, y)
        f[fisher] = learner.f["weight"][0]
    r = y - 0.3 * x.sum(1, keepdim=True)
    assert torch.allclose(f["sample"], 0.001 * (r * x).square().mean(0), rtol=1e-10)
    assert torch.allclose(f["gradient"], 0.001 * (r * x).mean(0).square(), rtol=1e-10)


def test_samples_have_the_documented_std_and_are_a_pure_function_of_seed_and_step():
    learner = regression(50_000, train_size=10, std_init=0.2, seed=5)
    first = learner.sample_offset(5, 0, 0)["weight"]
    assert first.std().item() == pytest.approx(0.2, rel=0.02)
    assert torch.equal(first, learner.sample_offset(5, 0, 0)["weight"])
    assert not torch.equal(first, learner.sample_offset(5, 0, 1)["weight"])
    assert not torch.equal(first, learner.sample_offset(5, 1, 0)["weight"])  # testing
    assert torch.allclose(stds(learner), torch.tensor(0.2, dtype=torch.float64))


def test_scale_and_shift_of_normalisation_layers_have_neither_noise_nor_prior():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    learner = NoisyAdam(net, Outputs(Heads(2, ((0, 1),))), train_size=10, std_init=0.3)
    assert set(learner.std()) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    for p in net.parameters():
        p.grad = torch.zeros_like(p)
    learner.current_offset = learner.sample_offset(0, 0, 0)
    learner.add_prior()
    assert net[1].weight.grad.eq(0).all()
    w = net[0].weight + learner.current_offset["0.weight"]
    assert torch.allclose(net[0].weight.grad, learner.intrinsic_damping * w)


def test_the_mean_is_restored_bit_for_bit_even_after_an_error():
    learner = regression(3, train_size=10, std_init=0.3)
    before = learner.net.weight.detach().clone()
    with learner.weights_at(learner.sample_offset(1)):
        assert not torch.equal(before, learner.net.weight)
    with pytest.raises(ZeroDivisionError), learner.weights_at(learner.sample_offset(1)):
        1 / 0  # noqa: B018
    assert torch.equal(before, learner.net.weight)
    assert math.isfinite(learner.observe(*data(4, 3)))
