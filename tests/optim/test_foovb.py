"""Matrix-variate FOO-VB: its equation is solved, its samples covary as they should, and it resumes."""

import copy
import io

import pytest
import torch
from problems import Problem
from torch import Tensor, nn

from bgd import BGD, predict
from bgd.optim import FOOVB
from bgd.optim.foovb import ROOTS, solve_factor


def content(optimizer: FOOVB) -> list[Tensor]:
    return [value.clone() for p in optimizer._params() for value in optimizer.state[p].values()]


def train(optimizer: FOOVB, problem: Problem, steps: int) -> None:
    for _ in range(steps):
        optimizer.step(problem.closure(optimizer, "mean"), batch_size=20)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 100.0])
def test_the_equation_is_solved(root, scale):
    torch.manual_seed(0)
    a, e = torch.randn(7, 7, dtype=torch.float64), scale * torch.randn(7, 7, dtype=torch.float64)
    v = a @ a.T
    x = a @ solve_factor(a.T @ e, root)
    assert float((x @ x.T + v @ e @ x.T - v).abs().max()) < 1e-8 * max(scale, 1.0)


def test_the_nearest_root_is_the_update_of_bgd_in_every_direction():
    torch.manual_seed(0)
    turn = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64)).Q
    values = torch.tensor([-3.0, -0.1, 0.2, 1.0, 9.0], dtype=torch.float64)
    factors = (-torch.asinh(values / 2)).exp()
    y = solve_factor(turn @ torch.diag(values) @ turn.T)
    torch.testing.assert_close(y, turn @ torch.diag(factors) @ turn.T, rtol=1e-10, atol=1e-12)
    contracting = solve_factor(turn @ torch.diag(values) @ turn.T, "contracting")
    torch.testing.assert_close(torch.linalg.svdvals(contracting).max(), factors[1] ** -1, rtol=1e-8, atol=0)


def test_samples_have_the_covariance_of_the_factors():
    p = nn.Parameter(torch.zeros(2, 3, dtype=torch.float64))
    optimizer = FOOVB([p], std_init=0.1, seed=1)
    state = optimizer.state[p]
    state["inner"].copy_(torch.tensor([[1.0, 0.5, 0], [0, 1, 0], [0.3, 0, 2]]))
    state["outer"].copy_(torch.tensor([[0.5, 0.4], [0, 0.3]]))
    state["std"].copy_(state["outer"].norm(dim=1).unsqueeze(1) * state["inner"].norm(dim=1))
    draws = optimizer.sample_weights(40_000)[p].flatten(1)
    expected = torch.kron(state["outer"] @ state["outer"].T, state["inner"] @ state["inner"].T)
    torch.testing.assert_close(draws.T.cov(), expected, rtol=0.05, atol=0.03)


def test_the_first_step_of_the_mean_is_that_of_bgd():
    torch.manual_seed(1)
    one, other = Problem(), Problem()
    other.model.load_state_dict(one.model.state_dict())
    foovb = FOOVB(one.model.parameters(), std_init=0.1, seed=3, mc_samples=4)
    bgd = BGD.paper(other.model.parameters(), 0.1, seed=3, mc_samples=4, reduction="mean")
    for optimizer, problem in ((foovb, one), (bgd, other)):
        optimizer.step(problem.closure(optimizer, "mean"), batch_size=20)
    torch.testing.assert_close(one.weights(), other.weights(), rtol=1e-8, atol=1e-10)
    bias = one.model[0].bias, other.model[0].bias
    torch.testing.assert_close(foovb.state[bias[0]]["std"], bgd.state[bias[1]]["std"])


@pytest.mark.parametrize("root", ROOTS)
def test_it_learns_samples_and_resumes_bit_for_bit(root):
    problem, resumed = Problem(), Problem()
    settings = {"std_init": 0.1, "mc_samples": 4, "antithetic": True, "root": root}
    optimizer = FOOVB(problem.model.parameters(), seed=1, **settings)
    other = FOOVB(resumed.model.parameters(), seed=2, **settings)
    first = problem.loss("mean").item()
    train(optimizer, problem, 5)
    assert problem.loss("mean").item() < first
    before = problem.weights()
    with optimizer.sampled():
        assert not torch.equal(problem.model[0].weight, before[0])
    assert predict(problem.model, optimizer, problem.x, samples=3).probs.shape == (20, 3)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    for one, its_own in ((problem, optimizer), (resumed, other)):
        train(its_own, one, 3)
    assert all(map(torch.equal, content(optimizer), content(other)))


def test_a_state_dict_is_loaded_whole_or_not_at_all():
    problem = Problem()
    optimizer = FOOVB(problem.model.parameters(), std_init=0.1, mc_samples=2)
    before = content(optimizer)
    wrong = [copy.deepcopy(optimizer.state_dict()) for _ in range(4)]
    del wrong[0]["state"][0]["inner"]
    wrong[1]["state"][0]["outer"][0, 0] = torch.nan
    wrong[2]["bgd"]["root"] = "any"
    wrong[3]["bgd"]["estimator"] = "per_example"
    for state in (*wrong, BGD(problem.model.parameters()).state_dict()):
        with pytest.raises(ValueError, match="Nothing has been loaded"):
            optimizer.load_state_dict(state)
    assert all(map(torch.equal, content(optimizer), before))


def test_what_it_does_not_support_is_refused(problem: Problem):
    weight = nn.Parameter(torch.zeros(2, 2))
    with pytest.raises(ValueError, match="'expanding'"):
        FOOVB([weight], root="expanding")
    with pytest.raises(ValueError, match="std_max is not supported"):
        FOOVB([{"params": [weight], "std_max": "init"}])
    with pytest.raises(ValueError, match="std_init must be one number"):
        FOOVB([weight], std_init=torch.tensor([0.1, 0.2]))
    optimizer = FOOVB(problem.model.parameters(), std_init=0.1)
    with pytest.raises(ValueError, match="no batched step"):
        optimizer.batched(problem.model, lambda net, x: net(x).sum())
