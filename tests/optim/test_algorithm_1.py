"""BGD against Algorithm 1 of the paper, written down plainly."""

import pytest
import torch
import torch.nn.functional as F
from problems import Problem
from shared_bgd import shared_bgd


class Algorithm1:
    """The paper's algorithm, line by line, one weight tensor at a time, on noise that it is given."""

    def __init__(self, weights: list[torch.Tensor], std_init: float, eta: float) -> None:
        self.mu = [w.clone() for w in weights]
        self.sigma = [torch.full_like(w, std_init) for w in weights]
        self.eta = eta

    def step(self, gradient, noise: list[list[torch.Tensor]]) -> None:
        e_g = [torch.zeros_like(m) for m in self.mu]
        e_g_eps = [torch.zeros_like(m) for m in self.mu]
        for eps in noise:
            theta = [m + e * s for m, s, e in zip(self.mu, self.sigma, eps, strict=True)]
            for i, g in enumerate(gradient(theta)):
                e_g[i] += g / len(noise)
                e_g_eps[i] += g * eps[i] / len(noise)
        for i in range(len(self.mu)):
            s, x = self.sigma[i], e_g_eps[i]
            self.mu[i] = self.mu[i] - self.eta * s**2 * e_g[i]
            self.sigma[i] = s * torch.sqrt(1 + (0.5 * s * x) ** 2) - 0.5 * s**2 * x


@pytest.mark.parametrize("antithetic", [False, True])
@pytest.mark.parametrize("eta", [1.0, 0.3])
def test_equal_step_by_step_for_shared_noise(problem: Problem, antithetic: bool, eta: float) -> None:
    optimizer = shared_bgd(
        problem.model.parameters(), std_init=0.1, mc_samples=4, lr=eta, antithetic=antithetic, seed=7, std_max=None
    )
    params = list(problem.model.parameters())
    plain = Algorithm1(problem.weights(), 0.1, eta)

    def gradient(theta: list[torch.Tensor]) -> list[torch.Tensor]:
        leaves = [t.clone().requires_grad_() for t in theta]
        hidden = torch.relu(problem.x @ leaves[0].T + leaves[1])
        loss = F.cross_entropy(hidden @ leaves[2].T + leaves[3], problem.y, reduction="sum")
        return list(torch.autograd.grad(loss, leaves))

    closure = problem.closure(optimizer)
    for _ in range(25):
        stacked = optimizer._training_noise(params, range(4))
        noise = [[e[k].clone() for e in stacked] for k in range(4)]
        if antithetic:
            assert torch.equal(noise[0][0], -noise[1][0])
            assert not torch.equal(noise[0][0], noise[2][0])
        # From the same point: a hundred rounding errors of the textbook form would grow along the way.
        plain.mu = problem.weights()
        plain.sigma = [optimizer.state[p]["std"].clone() for p in params]
        plain.step(gradient, noise)
        optimizer.step(closure)
        for p, mu, sigma in zip(params, plain.mu, plain.sigma, strict=True):
            torch.testing.assert_close(p.detach(), mu, rtol=1e-11, atol=1e-13)
            torch.testing.assert_close(optimizer.state[p]["std"], sigma, rtol=1e-11, atol=1e-13)


def test_returns_the_mean_loss_of_the_sampled_networks(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.5, mc_samples=6, seed=1, std_max=None)
    seen: list[torch.Tensor] = []
    closure = problem.closure(optimizer)

    def recording() -> torch.Tensor:
        seen.append(closure().detach())
        return seen[-1]

    returned = optimizer.step(recording)
    assert len(seen) == 6
    assert len({float(v) for v in seen}) == 6  # six different networks
    torch.testing.assert_close(returned, torch.stack(seen).mean())
