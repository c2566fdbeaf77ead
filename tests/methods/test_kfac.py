"""K-FAC and Noisy K-FAC: exact natural gradients, exact posteriors, and each other without noise."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from bgd.methods import KFAC, Gaussian, NoisyKFAC, Outputs
from bgd.methods.curvature.blocks import Kronecker
from bgd.methods.curvature.layers import to_matrix
from bgd.methods.curvature.natural_gradient import KLClip
from bgd.runs.evaluate import stds
from bgd.scenarios.heads import Heads

ALWAYS = {"stats_every": 1, "inverse_every": 1}
PLAIN = {"momentum": 0.0, "kl_clip": None, "fisher_label": "exact", **ALWAYS}


def heads(outputs: int) -> Heads:
    return Heads(outputs, (tuple(range(outputs)),))


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def step_of(learner, layer: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    before = to_matrix(layer).clone()
    learner.observe(x, y)
    return to_matrix(layer) - before


def with_ones(x: Tensor) -> Tensor:
    return torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], dim=1)


def test_its_step_on_a_linear_gaussian_model_is_the_natural_gradient():
    """F = E[J^T J] / std^2, densely, from the Jacobian; with lr 1 the step is Newton's, and ends at least squares."""
    x, y = normal(30, 4), normal(30, 3, seed=1)
    net = nn.Linear(4, 3).double()
    learner = KFAC(net, Outputs(heads(3), likelihood=Gaussian(std=0.5)), lr=1.0, damping=0.0, **PLAIN)

    def scores(flat: Tensor) -> Tensor:
        return with_ones(x) @ flat.view(3, 5).T

    start = to_matrix(net).flatten()
    jacobian = torch.func.jacrev(scores)(start)  # (B, outputs, weights)
    fisher = torch.einsum("boi,boj->ij", jacobian, jacobian) / 0.5**2 / len(x)
    gradient = torch.einsum("boi,bo->i", jacobian, scores(start) - y) / 0.5**2 / len(x)
    step = step_of(learner, net, x, y)
    assert torch.allclose(step.flatten(), -torch.linalg.solve(fisher, gradient), rtol=0, atol=1e-10)
    assert torch.allclose(to_matrix(net).T, torch.linalg.lstsq(with_ones(x), y).solution, rtol=0, atol=1e-10)


def test_its_step_on_a_softmax_layer_is_the_natural_gradient_where_the_fisher_factorises():
    """At weights 0 all samples have the same probabilities, so that E[a a^T x g g^T] = A x G. G is singular: the dense
    step is the one by the pseudo-inverse, and the smallest damping makes ours tend to it."""
    x, y = normal(40, 3), torch.randint(4, (40,), generator=torch.Generator().manual_seed(1))
    net = nn.Linear(3, 4).double()
    for p in net.parameters():
        nn.init.zeros_(p)
    learner = KFAC(net, Outputs(heads(4)), lr=0.1, damping=1e-14, **PLAIN)
    p = torch.full((4,), 0.25, dtype=torch.float64)
    per_class = torch.eye(4, dtype=torch.float64) - p
    fisher = sum(
        p[c] * torch.kron(torch.outer(g, g), a.T @ a / len(x)) for c, g in enumerate(per_class) for a in [with_ones(x)]
    )
    gradient = (p - torch.nn.functional.one_hot(y, 4)).T @ with_ones(x) / len(x)
    dense = -0.1 * torch.linalg.pinv(fisher, hermitian=True, rtol=1e-10) @ gradient.flatten()
    assert torch.allclose(step_of(learner, net, x, y).flatten(), dense, rtol=0, atol=1e-6 * float(dense.abs().max()))


def test_damping_weight_decay_and_labels_enter_as_documented():
    """A deep layer, against the dense damped matrix (A + pi sqrt(gamma)) x (G + sqrt(gamma) / pi)."""
    x, y = normal(20, 3), torch.randint(2, (20,), generator=torch.Generator().manual_seed(1))
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    settings = {**PLAIN, "fisher_label": "true"}
    learner = KFAC(net, Outputs(heads(2)), lr=1.0, damping=0.3, weight_decay=0.1, **settings)
    w1, b1 = net[0].weight.detach().clone().requires_grad_(), net[0].bias.detach().clone()
    before = nn.functional.linear(x, w1, b1)
    losses = nn.functional.cross_entropy(
        nn.functional.linear(before.tanh(), net[2].weight, net[2].bias), y, reduction="none"
    )
    (g,) = torch.autograd.grad(losses.sum(), before)
    a_factor, g_factor = with_ones(x).T @ with_ones(x) / 20, g.T @ g / 20
    pi = (a_factor.trace() / 4 / (g_factor.trace() / 4)).sqrt()
    eye = torch.eye(4, dtype=torch.float64)
    gradient = g.T @ with_ones(x) / 20 + 0.1 * to_matrix(net[0])
    dense = torch.kron(g_factor + 0.3**0.5 / pi * eye, a_factor + 0.3**0.5 * pi * eye)
    step = step_of(learner, net[0], x, y)
    assert torch.allclose(step.flatten(), -torch.linalg.solve(dense, gradient.flatten()), rtol=1e-9, atol=0)


def test_a_convolution_with_one_position_steps_as_a_linear_layer():
    x, y = normal(12, 3), torch.randint(2, (12,), generator=torch.Generator().manual_seed(1))
    linear, conv = nn.Linear(3, 2).double(), nn.Conv2d(3, 2, 1).double()
    conv.load_state_dict({"weight": linear.weight.detach()[..., None, None], "bias": linear.bias.detach()})
    nets = [linear, nn.Sequential(conv, nn.Flatten())]
    steps = [
        step_of(KFAC(net, Outputs(heads(2)), **ALWAYS), layer, inputs, y)
        for net, layer, inputs in zip(nets, [linear, conv], [x, x[..., None, None]], strict=True)
    ]
    assert torch.allclose(*steps, rtol=1e-12)
    assert steps[0].abs().max() > 0


def conv_net() -> nn.Module:
    net = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2))
    g = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(p.shape, generator=g) * 0.3 + (p.ndim == 1))
    return net


def images(step: int = 0) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(step)
    return torch.randn(8, 1, 4, 4, generator=g), torch.randint(2, (8,), generator=g)


def test_without_noise_noisy_kfac_is_kfac_bit_for_bit():
    shared = {"stats_every": 2, "inverse_every": 3, "seed": 4}
    kfac = KFAC(conv_net(), Outputs(heads(2)), **shared)
    noisy = NoisyKFAC(conv_net(), Outputs(heads(2)), train_size=80, kl_weight=0.0, **shared)
    for step in range(9):
        assert kfac.observe(*images(step)) == noisy.observe(*images(step))
    assert all(map(torch.equal, kfac.net.state_dict().values(), noisy.net.state_dict().values()))
    assert stds(noisy).eq(0).all()


def test_the_prior_is_kfacs_weight_decay():
    """Before the noise begins: gamma_in W is the gradient of weight decay, and gamma_in adds to the damping."""
    net, x, y = nn.Linear(3, 2).double(), normal(6, 3), torch.tensor([0, 1, 0, 1, 0, 1])
    twin = nn.Linear(3, 2).double()
    twin.load_state_dict(net.state_dict())
    noisy = NoisyKFAC(net, Outputs(heads(2)), train_size=10, kl_weight=0.5, prior_variance=0.2, damping=0.1)
    kfac = KFAC(twin, Outputs(heads(2)), damping=0.35, weight_decay=0.25)
    for _ in range(5):
        noisy.observe(x, y)
        kfac.observe(x, y)
    assert torch.allclose(net.weight, twin.weight, rtol=1e-12)


def test_there_is_no_noise_before_the_first_inversion_and_there_is_after():
    learner = NoisyKFAC(conv_net(), Outputs(heads(2)), train_size=80, inverse_every=4)
    x, _ = images()
    for step in range(3):
        learner.observe(*images(step))
        assert not learner.current_offset
    assert torch.equal(*learner.predict_samples(x, 2))
    learner.observe(*images(3))
    assert not torch.equal(*learner.predict_samples(x, 2))
    learner.observe(*images(4))
    assert set(learner.current_offset) == {"0.weight", "0.bias", "4.weight", "4.bias"}  # not BatchNorm
    assert learner.current_offset["0.weight"].abs().min() > 0


def test_a_convolutional_net_with_batch_norm_resumes_bit_for_bit_between_inversions():
    def fresh() -> NoisyKFAC:
        return NoisyKFAC(conv_net(), Outputs(heads(2)), train_size=80, stats_every=2, inverse_every=4)

    whole, resumed = fresh(), fresh()
    for step in range(7):  # the factors are newer than their inverses
        whole.observe(*images(step))
    resumed.load_state_dict(whole.state_dict())
    for step in range(7, 14):
        assert whole.observe(*images(step)) == resumed.observe(*images(step))
    assert all(map(torch.equal, whole.net.state_dict().values(), resumed.net.state_dict().values()))
    assert torch.equal(stds(whole), stds(resumed))
    assert stds(whole).min() > 0


def test_samples_have_the_covariance_of_the_inverse_factors():
    net = nn.Linear(2, 2).double()
    learner = NoisyKFAC(net, Outputs(heads(2)), train_size=50, kl_weight=0.6, prior_variance=2.0, **ALWAYS)
    learner.observe(normal(30, 2) @ normal(2, 2, seed=2), (normal(30, seed=1) > 0).long())
    a, g = learner.natural_gradient.average[""]
    damped = Kronecker(a, g).damped(0.6 / (50 * 2.0))
    covariance = 0.6 / 50 * torch.linalg.inv(torch.kron(damped.g, damped.a))
    samples = [learner.sample_offset(k) for k in range(4000)]
    flat = torch.stack([torch.cat([d["weight"], d["bias"][:, None]], dim=1).flatten() for d in samples])
    scale = torch.outer(covariance.diagonal(), covariance.diagonal()).sqrt()
    assert ((flat.T @ flat / len(flat) - covariance) / scale).abs().max() < 0.08
    exact = covariance.diagonal().sqrt().view(2, 3)
    assert torch.allclose(learner.std()["weight"], exact[:, :2])
    assert torch.allclose(learner.std()["bias"], exact[:, 2])


def test_its_posterior_of_a_linear_gaussian_model_is_exact_as_the_prior_widens():
    """Bayes: covariance (X^T X)^-1 of each row, off the diagonal too; the mean is that of least squares."""
    x, y = normal(40, 3) @ normal(3, 3, seed=3), normal(40, 1, seed=1)
    net = nn.Linear(3, 1, bias=False).double()
    learner = NoisyKFAC(
        net,
        Outputs(heads(1), likelihood=Gaussian()),
        train_size=40,
        prior_variance=1e12,
        damping=0.0,
        lr=0.05,
        **PLAIN,
    )
    means = []
    for _ in range(1000):
        learner.observe(x, y)
        means.append(net.weight.detach().clone())
    root = learner.natural_gradient.root[""]
    covariance = root.a.mT @ root.a * root.g**2 / 40
    assert torch.allclose(covariance, torch.linalg.inv(x.T @ x), rtol=1e-4)
    mean, exact = torch.stack(means[100:]).mean(0)[0], torch.linalg.lstsq(x, y).solution[:, 0]
    # lr times the noise of each step stays in the mean: within a tenth of the posterior's own std
    assert ((mean - exact).abs() / covariance.diagonal().sqrt()).max() < 0.1


def test_clipping_bounds_the_kl_of_the_first_step_exactly():
    x, y = normal(20, 3), torch.randint(2, (20,), generator=torch.Generator().manual_seed(1))
    nets = [nn.Linear(3, 2).double() for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    settings = {**PLAIN, "lr": 0.7, "damping": 0.01}
    free = step_of(KFAC(nets[0], Outputs(heads(2)), **settings), nets[0], x, y)
    learner = KFAC(nets[1], Outputs(heads(2)), **{**settings, "kl_clip": 1e-4})
    clipped = step_of(learner, nets[1], x, y)
    assert torch.allclose(clipped / free, (clipped / free)[0, 0].expand(2, 4))
    assert learner.natural_gradient.average[""].damped(0.01).quadratic(clipped) == pytest.approx(1e-4, rel=1e-9)


def test_factors_are_a_mean_first_and_then_a_moving_average():
    net = nn.Linear(1, 2, bias=False)
    learner = KFAC(net, Outputs(heads(2)), decay=0.6, stats_every=1, inverse_every=3)
    inverses = []
    for value in (1.0, 2.0, 3.0, 4.0):
        learner.observe(torch.full((4, 1), value), torch.tensor([0, 1, 0, 1]))
        inverses.append(learner.natural_gradient.inverse[""].a)
    # 1; (1 + 4) / 2; then 0.6 of what was and 0.4 of what is
    assert learner.natural_gradient.average[""].a.item() == pytest.approx((2.5 * 0.6 + 9 * 0.4) * 0.6 + 16 * 0.4)
    # batches 1 and 2 (powers of two) before iteration 3, and then every third
    assert not torch.equal(inverses[0], inverses[1])
    assert not torch.equal(inverses[1], inverses[2])
    assert torch.equal(inverses[2], inverses[3])


def test_sampled_labels_are_a_pure_function_of_seed_and_iteration():
    def factor(seed: int) -> Tensor:
        net = nn.Linear(3, 4)
        for p in net.parameters():
            nn.init.zeros_(p)
        learner = KFAC(net, Outputs(heads(4)), seed=seed)
        learner.observe(normal(9, 3).float(), torch.zeros(9, dtype=torch.int64))
        return learner.natural_gradient.average[""].g

    assert torch.equal(factor(1), factor(1))
    assert not torch.equal(factor(1), factor(2))


@pytest.mark.parametrize("bound", [0.0, -1.0])
def test_a_clip_bound_must_be_positive(bound):
    with pytest.raises(ValueError, match="kl_clip="):
        KLClip(bound, 1.0)
