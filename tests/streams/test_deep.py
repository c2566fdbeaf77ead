"""The deep member against BGD's own equations, and what it must survive."""

import numpy as np
import torch

from bgd.optim.bgd import boosted
from bgd.optim.update import Gaussian, Limits, update
from bgd.streams import deep


def example(rows=7, inputs=3, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    x = np.concatenate([np.ones((rows, 1)), rng.normal(size=(rows, inputs))], 1)
    return x, np.eye(classes)[rng.integers(0, classes, rows)], rng.uniform(0.5, 2.0, rows)


def torch_expectations(net, x, labels, weights, eps, signs):
    """E[g] and E[g eps] by autograd, with weights of its own for every example, written out."""
    means = [torch.tensor(m).double().requires_grad_() for m in deep.layers(net.mean, net.sizes)]
    stds, normals = deep.layers(net.std, net.sizes), deep.layers(eps, net.sizes)
    sampled, loss = [], 0.0
    for n in range(len(x)):
        h = torch.tensor(x[n])
        for layer, (mean, std, normal, (r, s)) in enumerate(zip(means, stds, normals, signs, strict=True)):
            own = torch.tensor(normal * r[n][:, None] * s[n][None]).double()
            h = h if layer == 0 else torch.cat([torch.ones(1, dtype=torch.float64), h.relu()])
            theta = mean + torch.tensor(std).double() * own
            theta.retain_grad()
            sampled.append((layer, theta, own))
            h = h @ theta
        loss = loss - weights[n] * (h.log_softmax(0) * torch.tensor(labels[n])).sum()
    loss.backward()
    e_g_eps = [torch.zeros_like(mean) for mean in means]
    for layer, theta, own in sampled:
        e_g_eps[layer] += theta.grad * own
    return [mean.grad for mean in means], e_g_eps


def test_a_step_is_that_of_bgd():
    x, labels, weights = example()
    net = deep.begin(3, 4, seed=0)
    net.std[:] *= np.random.default_rng(1).uniform(0.3, 1.0, len(net.std))
    eps, signs = deep.noise(net, len(x), step=5)
    e_g, e_g_eps = torch_expectations(net, x, labels, weights, eps, signs)
    parts = (deep.layers(part, net.sizes) for part in (net.mean, net.std, net.ceiling))
    before = [tuple(torch.tensor(part).double() for part in layer) for layer in zip(*parts, strict=True)]
    limits = [Limits(std_max=top, max_move=0.25, weight=boosted(256.0, len(x))) for _, _, top in before]
    posterior = [Gaussian(mean, std) for mean, std, _ in before]
    expected = list(update(posterior, zip(e_g, e_g_eps, strict=True), limits))
    deep.train_(net, x, labels, weights, step=5)
    kept = (1 - deep.FADING) ** len(x)
    for layer, (mean, std) in enumerate(
        zip(deep.layers(net.mean, net.sizes), deep.layers(net.std, net.sizes), strict=True)
    ):
        top = before[layer][2]
        faded = (kept / expected[layer].std ** 2 + (1 - kept) / top**2) ** -0.5
        np.testing.assert_allclose(mean, expected[layer].mean, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(std, faded, rtol=1e-4)


def test_new_inputs_change_nothing_until_they_differ_from_zero():
    x, labels, weights = example()
    net = deep.begin(3, 4, seed=0)
    deep.train_(net, x, labels, weights, step=1)
    wider = deep.widen(net, 5, 6, seed=0, bias=-3.0)
    more = np.concatenate([x, np.zeros((len(x), 2))], 1)
    old, new = deep.predict(net, x), deep.predict(wider, more)
    np.testing.assert_allclose(new[:, :4] / new[:, :4].sum(1, keepdims=True), old, rtol=1e-5)
    assert new[:, 4:].max() < 0.1


def test_wild_labels_and_inputs_leave_it_finite():
    net, rng = deep.begin(6, 3, seed=0), np.random.default_rng(0)
    for step in range(300):
        x = np.concatenate([np.ones((4, 1)), rng.choice([-6.0, 6.0], (4, 6))], 1)
        deep.train_(net, x, np.eye(3)[rng.integers(0, 3, 4)], np.full(4, 1e6), step)
    assert np.isfinite(net.mean).all()
    assert (net.std > 0).all()
    assert (net.std <= net.ceiling * 1.0001).all()
