"""The relatives of BGD: each against a known answer, and all in the same habits."""

import copy
import io
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from problems import Problem
from torch import Tensor, nn

from bgd import BGD, predict
from bgd.optim import BONG, IVON, MESU, BAdam
from bgd.optim.estimators.base import Expectations, Step
from bgd.optim.relatives import Relative

Make = Callable[..., Relative]
FAMILY: dict[str, Make] = {
    "MESU": lambda params, **settings: MESU(params, **{"memory": 200, "std_init": 0.1} | settings),
    "BONG": lambda params, **settings: BONG(params, **{"std_init": 0.1} | settings),
    "BONG, fisher": lambda params, **settings: BONG(
        params, **{"std_init": 0.1, "curvature": "fisher", "decay": 0.999, "process_noise": 1e-4} | settings
    ),
    "IVON": lambda params, **settings: IVON(params, **{"std_init": 0.1, "ess": 300, "beta2": 0.99} | settings),
    "BAdam": lambda params, **settings: BAdam(params, **{"std_init": 0.1} | settings),
}
every = pytest.mark.parametrize("make", FAMILY.values(), ids=FAMILY)


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def given(e_g: Tensor, e_g_eps: Tensor, examples: int = 1) -> Callable[[Step], Expectations]:
    return lambda _: Expectations([e_g], [e_g_eps], torch.tensor(0.0), [True], examples=examples)


def least_squares(x: Tensor, y: Tensor) -> Callable[[Step], Expectations]:
    """The exact expectations of sum (y - theta x)^2 / 2, each weight with an input of its own."""
    h = x.square().sum(0)

    def estimate(step: Step) -> Expectations:
        e_g = [h * step.means[0] - (x * y).sum(0)]
        return Expectations(e_g, [h * step.stds[0]], None, [True], examples=len(x))

    return estimate


def one(make: Callable[..., Relative | BGD], **settings: Any) -> tuple[Any, Callable[[], tuple[Tensor, Tensor]]]:
    p = nn.Parameter(tensor(0.5, -1.0, 0.0))
    optimizer = make([p], **settings)
    return optimizer, lambda: (optimizer.state[p]["mean"].clone(), optimizer.state[p]["std"].clone())


# --- each against a known answer


def test_mesu_with_an_endless_window_is_bgd_to_first_order():
    found = []
    for scale in (1e-3, 1e-4):
        g, g_eps = scale * tensor(3.0, -1.0, 0.5), scale * tensor(2.0, 5.0, -4.0)
        mesu, of_mesu = one(MESU, memory=1e30, std_init=0.5, std_max=None)
        bgd, of_bgd = one(BGD, std_init=0.5, std_max=None, max_move=None, boost=None)
        for optimizer in (mesu, bgd):
            optimizer.step_with(given(g, g_eps), batch_size=1)
        assert torch.equal(of_mesu()[0], of_bgd()[0])
        found.append((of_mesu()[1] - of_bgd()[1]).abs().max())
    assert 0 < found[1] < 0.011 * found[0]  # the second order is what is left


def test_without_data_mesu_returns_to_its_prior():
    optimizer, posterior = one(MESU, memory=50, std_init=0.5)
    prior = posterior()
    nothing = torch.full((3,), 1e-30, dtype=torch.float64)
    for _ in range(3):
        optimizer.step_with(given(tensor(3.0, -1.0, 0.5), tensor(2.0, 5.0, 4.0)), batch_size=1)
    assert bool((posterior()[1] < 0.45).all())
    for _ in range(500):
        optimizer.step_with(given(nothing, nothing, 4), batch_size=4)
    torch.testing.assert_close(posterior(), prior, rtol=1e-9, atol=1e-9)


def test_mesu_is_its_equations():
    optimizer, posterior = one(MESU, memory=40, std_init=0.5, lr=0.7, std_max=None)
    mu0, s0 = mu, s = posterior()
    for k in range(4):
        g, g_eps = tensor(0.3, -0.1 * k, 0.2), tensor(0.2, -0.4, 0.1 * k)
        optimizer.step_with(given(g, g_eps, 3), batch_size=3)
        mu, s = (
            mu - 0.7 * s**2 * g + 3 * s**2 * (mu0 - mu) / (40 * s0**2),
            s - s**2 / 2 * g_eps + 3 * s * (s0**2 - s**2) / (2 * 40 * s0**2),
        )
    torch.testing.assert_close(posterior(), (mu, s), rtol=1e-12, atol=0)


def test_bong_on_a_linear_model_is_the_kalman_filter():
    torch.manual_seed(4)
    decay, noise = 0.98, 0.01
    optimizer, posterior = one(BONG, std_init=0.7, std_max=None, decay=decay, process_noise=noise)
    mean, std = posterior()
    variance = std**2
    for _ in range(6):
        x, y = torch.randn(1, 3, dtype=torch.float64), torch.randn(1, 3, dtype=torch.float64)
        optimizer.step_with(least_squares(x, y), batch_size=1)
        gain = variance * x[0] / (x[0] ** 2 * variance + 1)  # Kalman's, with observations of variance 1
        mean, variance = mean + gain * (y[0] - x[0] * mean), (1 - gain * x[0]) * variance
        mean, variance = decay * mean, decay**2 * variance + noise
    torch.testing.assert_close(posterior(), (mean, variance.sqrt()), rtol=1e-12, atol=1e-14)


def test_bong_does_not_depend_on_the_cut_into_batches():
    torch.manual_seed(4)
    x, y = torch.randn(6, 3, dtype=torch.float64), torch.randn(6, 3, dtype=torch.float64)
    results = []
    for size in (6, 2):
        optimizer, posterior = one(BONG, std_init=0.7)
        for rows in range(0, 6, size):
            optimizer.step_with(least_squares(x[rows : rows + size], y[rows : rows + size]), batch_size=size)
        results.append(posterior())
    torch.testing.assert_close(*results, rtol=1e-12, atol=1e-14)


def test_bong_with_squared_gradients_adds_their_mean_square():
    optimizer, posterior = one(BONG, curvature="fisher", std_init=0.7)
    mean, std = posterior()
    g = tensor(3.0, -40.0, 0.0)
    optimizer.step_with(given(g, tensor(-9.0, -9.0, -9.0), 4), batch_size=4)
    variance = 1 / (1 / std**2 + g**2 / 4)
    torch.testing.assert_close(posterior(), (mean - variance * g, variance.sqrt()), rtol=1e-12, atol=0)


def test_bong_bounds_what_noise_may_do():
    optimizer, posterior = one(BONG, std_init=0.7, std_max=None)
    optimizer.step_with(given(tensor(0, 0, 0), tensor(-1e6, -2.0, -1e-3)), batch_size=1)
    assert posterior()[1][:2].tolist() == [1.4, 1.4]


def test_ivon_is_its_equations_in_a_plain_loop():
    ess, beta1, beta2, delta, lr, n = 50.0, 0.8, 0.9, 0.03, 0.2, 4
    settings = {"ess": ess, "beta1": beta1, "beta2": beta2, "weight_decay": delta, "lr": lr}
    optimizer, posterior = one(IVON, std_init=0.3, **settings)
    mean, std = posterior()
    h, momentum = 1 / (ess * std**2) - delta, torch.zeros_like(mean)
    for t in range(1, 8):
        g, g_eps = tensor(0.3 * t, -1.0, 0.2), tensor(1.5, -6.0 + t, 0.1 * t)
        optimizer.step_with(given(g, g_eps, n), batch_size=n)
        sigma = (ess * (h + delta)) ** -0.5
        f = g_eps / n / sigma
        momentum = beta1 * momentum + (1 - beta1) * g / n
        h = beta2 * h + (1 - beta2) * f + (1 - beta2) ** 2 * (h - f) ** 2 / (2 * (h + delta))
        mean = mean - lr * (momentum / (1 - beta1**t) + delta * mean) / (h + delta)
    torch.testing.assert_close(posterior(), (mean, (ess * (h + delta)) ** -0.5), rtol=1e-10, atol=1e-12)


def test_badam_is_adam_with_the_variance_as_step_size_and_the_stds_of_bgd():
    optimizer, posterior = one(BAdam, std_init=0.3, lr=2.0, beta1=0.8, beta2=0.95, damping=1e-3, std_max=None)
    bgd, of_bgd = one(BGD, std_init=0.3, std_max=None, boost=None)
    adam_p = nn.Parameter(tensor(0.5, -1.0, 0.0))
    adam = torch.optim.Adam([adam_p], lr=2.0 * 0.09, betas=(0.8, 0.95), eps=1e-3)
    nothing = tensor(0.0, 0.0, 0.0)
    for t in range(5):
        adam_p.grad = tensor(1.0 - t, 0.1, 3.0 * t)
        adam.step()
        optimizer.step_with(given(adam_p.grad, nothing), batch_size=1)
    torch.testing.assert_close(posterior()[0], adam_p.detach(), rtol=1e-10, atol=1e-12)
    for one_of_both in (optimizer, bgd):
        one_of_both.step_with(given(nothing, tensor(2.0, -3.0, 9.0)), batch_size=1)
    torch.testing.assert_close(posterior()[1], of_bgd()[1], rtol=1e-12, atol=0)


# --- all in the same habits


def network() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def train(optimizer: Relative, model: nn.Module, batches: int, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(batches):
        x, y = torch.randn(8, 6, generator=generator), torch.randint(3, (8,), generator=generator)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def content(optimizer: Relative) -> list[Tensor]:
    return [value.clone() for p in optimizer._params() for value in optimizer.state[p].values()]


def close(a: list[Tensor], b: list[Tensor]) -> bool:
    return all(torch.allclose(x, y, rtol=1e-8, atol=1e-12) for x, y in zip(a, b, strict=True))


def batched_step(problem: Problem, optimizer: Relative) -> None:
    def objective(net: Any, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(net(x), y)

    optimizer.batched(problem.model, objective, compile=False)(problem.x, problem.y, batch_size=20)


@every
def test_every_estimator_moves_the_posterior(make: Make):
    def loop(problem: Problem, optimizer: Relative) -> None:
        optimizer.step(problem.closure(optimizer, "mean"), batch_size=20)

    def one_pass(problem: Problem, optimizer: Relative) -> None:
        optimizer.zero_grad()
        problem.loss("mean").backward()
        optimizer.step()

    results = {}
    for name, step, settings in (
        ("one pass", one_pass, {}),
        ("passes", loop, {"mc_samples": 2}),
        ("loop", loop, {"mc_samples": 4, "estimator": "shared", "antithetic": True}),
        ("batched", batched_step, {"mc_samples": 4, "estimator": "shared", "antithetic": True}),
    ):
        problem = Problem()
        torch.manual_seed(0)
        with torch.no_grad():
            for p in problem.model.parameters():
                p.copy_(torch.randn(p.shape))
        optimizer = make(problem.model.parameters(), seed=1, **settings)
        before = content(optimizer)
        for _ in range(2):
            step(problem, optimizer)
        results[name] = content(optimizer)
        assert not close(before, results[name])
        assert all(torch.equal(p, optimizer.state[p]["mean"]) for p in problem.model.parameters())
    assert close(results["loop"], results["batched"])


@every
def test_samples_and_predictions(make: Make):
    model = network()
    optimizer = make(model.parameters())
    train(optimizer, model, 3)
    before = model[0].weight.clone()
    with optimizer.sampled():
        assert not torch.equal(model[0].weight, before)
    assert torch.equal(model[0].weight, before)
    assert predict(model, optimizer, torch.randn(5, 6), samples=4).probs.shape == (5, 3)


@every
def test_it_resumes_bit_for_bit_from_plain_data(make: Make):
    whole, resumed = network(), network()
    optimizer, other = make(whole.parameters(), seed=1), make(resumed.parameters(), seed=2, lr=0.3)
    train(optimizer, whole, 5)
    train(other, resumed, 2, seed=5)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    for model, one in ((whole, optimizer), (resumed, other)):
        train(one, model, 5, seed=7)
    assert all(map(torch.equal, content(optimizer), content(other)))


@every
def test_copies_continue_alike(make: Make):
    model = network()
    optimizer = make(model.parameters())
    train(optimizer, model, 3)
    pairs = [copy.deepcopy((model, optimizer)), pickle.loads(pickle.dumps((model, optimizer)))]
    for other, its_own in [*pairs, (model, optimizer)]:
        train(its_own, other, 3, seed=4)
        assert all(map(torch.equal, content(pairs[0][1]), content(its_own)))


@every
def test_a_state_dict_is_loaded_whole_or_not_at_all(make: Make):
    model = network()
    optimizer = make(model.parameters())
    train(optimizer, model, 3)
    good, before = optimizer.state_dict(), content(optimizer)
    wrong: list[dict[str, Any]] = []
    for key in good["state"][0]:
        if key != "std_init":
            wrong += (copy.deepcopy(good) for _ in range(2))
            del wrong[-1]["state"][0][key]
            wrong[-2]["state"][0][key] = good["state"][0][key] * math.nan
    for key in optimizer.rules:
        wrong += (copy.deepcopy(good) for _ in range(2))
        del wrong[-1]["param_groups"][0][key]
        wrong[-2]["param_groups"][0][key] = -1.0
    wrong.append(copy.deepcopy(good))
    wrong[-1]["state"][0]["surprise"] = torch.zeros(1)
    for state in (*wrong, BGD(network().parameters()).state_dict()):
        with pytest.raises(ValueError, match="Nothing has been loaded"):
            optimizer.load_state_dict(state)
    assert all(map(torch.equal, content(optimizer), before))
    optimizer.load_state_dict(good)


@every
def test_groups_have_settings_of_their_own(make: Make):
    model = network()
    optimizer = make([{"params": model[0].parameters(), "lr": 0.0}, {"params": model[2].parameters(), "std_init": 0.2}])
    assert float(optimizer.state[model[2].weight]["std"].mean()) == pytest.approx(0.2)
    first, last = model[0].bias.clone(), model[2].bias.clone()
    train(optimizer, model, 2)
    moved = optimizer.param_groups[0].get("decay", 1.0) != 1.0
    assert torch.equal(model[0].bias, first) != moved
    assert not torch.equal(model[2].bias, last)


@every
@pytest.mark.parametrize("nonfinite", ["raise", "skip"])
def test_a_gradient_that_is_not_finite_changes_nothing(make: Make, nonfinite: str):
    model = network()
    optimizer = make(model.parameters(), nonfinite=nonfinite)
    train(optimizer, model, 2)
    before = content(optimizer)
    optimizer.zero_grad()
    (model(torch.ones(4, 6)).sum() * math.inf).backward()
    if nonfinite == "raise":
        with pytest.raises(FloatingPointError, match="the posterior is unchanged"):
            optimizer.step()
    else:
        optimizer.step()
    assert all(map(torch.equal, content(optimizer), before))


@every
def test_a_step_that_overflows_is_refused(make: Make):
    optimizer = make([nn.Parameter(torch.zeros(3))], lr=1e38, std_init=1e18, std_max=None)
    before = content(optimizer)
    with pytest.raises(FloatingPointError, match="leads to a NaN or infinite mean"):
        optimizer.step_with(given(torch.full((3,), 1e-18), torch.zeros(3)), batch_size=1)
    assert all(map(torch.equal, content(optimizer), before))


@every
def test_what_has_no_gradient_stays_as_it_is(make: Make):
    model = network()
    spare = nn.Linear(2, 2)
    optimizer = make([*model.parameters(), *spare.parameters()])
    before = [value.clone() for value in optimizer.state[spare.weight].values()]
    train(optimizer, model, 3)
    assert all(map(torch.equal, optimizer.state[spare.weight].values(), before))


@every
def test_stds_stay_within_their_bounds(make: Make):
    model = network()
    optimizer = make(model.parameters(), std_min=0.095, std_max=0.101)
    train(optimizer, model, 20)
    stds = torch.cat([optimizer.state[p]["std"].flatten() for p in model.parameters()])
    assert float(stds.min()) >= 0.095 * (1 - 1e-6)
    assert float(stds.max()) <= 0.101 * (1 + 1e-6)


@pytest.mark.parametrize("make", [FAMILY[name] for name in ("MESU", "BONG, fisher", "IVON")])
def test_examples_that_nobody_counts_are_an_error(problem: Problem, make: Make):
    optimizer = make(problem.model.parameters(), estimator="shared", reduction="sum", mc_samples=2)
    before = content(optimizer)
    with pytest.raises(RuntimeError, match=f"{type(optimizer).__name__} counts examples"):
        optimizer.step(problem.closure(optimizer))
    assert all(map(torch.equal, content(optimizer), before))


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (MESU, {"memory": 0}, "memory must be a positive number, got 0"),
        (MESU, {"std_shrink": 1.0}, "std_shrink must be a number from 0 to below 1"),
        (BONG, {"curvature": "newton"}, "'newton'"),
        (BONG, {"process_noise": -1.0}, "process_noise must be a finite number from 0, got -1.0"),
        (IVON, {"ess": -5}, "ess must be a positive number, got -5"),
        (IVON, {"beta2": 1.0}, "beta2 must be a number from 0 to below 1, got 1.0"),
        (BAdam, {"damping": 0.0}, "damping must be a positive number, got 0.0"),
        (BAdam, {"mc_samples": 0}, "mc_samples"),
    ],
)
def test_a_bad_argument_is_named_with_its_value(make: Make, settings: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        make([nn.Parameter(torch.zeros(2))], **settings)
