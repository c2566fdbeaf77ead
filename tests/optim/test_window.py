"""A window of memory: what was learned fades with the examples after it, and every weight returns to its prior."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from problems import Problem, posterior
from torch import Tensor, nn

from bgd import BGD
from bgd.optim.estimators.base import Expectations, Step
from bgd.optim.update import Gaussian
from bgd.optim.window import tether

STD = st.floats(1e-3, 1e3)


def number(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float64)


@given(std=STD, prior=STD, mean=st.floats(-3, 3), windows=st.floats(0, 5))
def test_the_precision_beyond_the_priors_and_what_it_weighs_fade(std, prior, mean, windows):
    new = Gaussian(number(mean), number(std))
    tether(new, number(0.5), prior, windows)
    kept = torch.tensor(-windows).double().exp()
    precision = kept / number(std) ** 2 + (1 - kept) / prior**2
    weighed = (kept * mean / number(std) ** 2 + (1 - kept) * 0.5 / prior**2) / precision
    torch.testing.assert_close(new.std, precision**-0.5, rtol=1e-6, atol=0)
    torch.testing.assert_close(new.mean, weighed, rtol=1e-5, atol=1e-6)
    assert min(std, prior) <= float(new.std) <= max(std, prior)


def test_the_cut_into_batches_does_not_matter():
    whole, parts = (Gaussian(number(1.0), number(0.2)) for _ in range(2))
    tether(whole, number(0.0), 0.5, 1.5)
    for windows in (0.3, 1.0, 0.2):
        tether(parts, number(0.0), 0.5, windows)
    torch.testing.assert_close(whole, parts, rtol=1e-12, atol=0)


def exact(h: float, examples: int):
    """The expectations of a loss h / 2 theta^2 for each of so many examples."""

    def estimate(step: Step) -> Expectations:
        e_g = [examples * h * mean for mean in step.means]
        e_g_eps = [examples * h * std for std in step.stds]
        return Expectations(e_g, e_g_eps, None, [True] * len(e_g), examples=examples)

    return estimate


@pytest.mark.parametrize("implicit", [1, 20])
def test_a_stream_without_end_is_known_as_well_as_a_window_of_it(implicit):
    p = nn.Parameter(number(1.0))
    optimizer = BGD([p], std_init=1.0, memory=400, boost=None, implicit_iterations=implicit)
    for _ in range(3000):
        optimizer.step_with(exact(0.05, 4), batch_size=4)
    precision = float(optimizer.state[p]["std"]) ** -2
    assert precision == pytest.approx(1 + 400 * 0.05, rel=0.02)
    assert p.item() == pytest.approx(1 / precision, rel=0.02)  # the prior's mean, by its share of the precision


def train(optimizer: BGD, model: nn.Module, batches: int, seed: int = 0, gain: float = 1.0) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(batches):
        x, y = torch.randn(8, 6, generator=generator), torch.randint(3, (8,), generator=generator)
        optimizer.zero_grad()
        (gain * F.cross_entropy(model(x), y)).backward()
        optimizer.step()


def network() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def test_without_news_everything_returns_to_its_prior():
    model = network()
    optimizer = BGD(model.parameters(), memory=100, seed=1)
    prior = posterior(optimizer)
    train(optimizer, model, 20)
    learned = posterior(optimizer)
    assert not all(torch.allclose(a, b, rtol=1e-2) for a, b in zip(prior, learned, strict=True))
    train(optimizer, model, 200, gain=1e-12)
    torch.testing.assert_close(posterior(optimizer), prior, rtol=1e-3, atol=1e-3)


def test_no_std_grows_beyond_the_cap_by_the_window():
    model = network()
    optimizer = BGD(model.parameters(), memory=20, seed=1)
    for seed in range(10):
        train(optimizer, model, 3, seed=seed)
        for p in model.parameters():
            assert bool((optimizer.state[p]["std"] <= optimizer.state[p]["std_init"]).all())


def test_without_a_window_nothing_of_it_is_there(problem: Problem):
    optimizer = BGD(problem.model.parameters())
    assert all("prior_mean" not in optimizer.state[p] for p in problem.model.parameters())


def test_groups_have_windows_of_their_own():
    results = []
    for memory in (None, 50):
        model = network()
        groups: list[dict[str, Any]] = [
            {"params": model[0].parameters()},
            {"params": model[2].parameters(), "memory": memory},
        ]
        optimizer = BGD(groups, seed=1)
        train(optimizer, model, 1)
        results.append(optimizer.state[model[0].weight]["std"].clone())
        assert ("prior_mean" in optimizer.state[model[2].weight]) == (memory is not None)
    assert torch.equal(*results)


def test_sampled_networks_count_by_the_batch_size():
    optimizers = []
    for settings in ({"batch_size": 20}, {}):
        torch.manual_seed(1)
        problem = Problem()
        mean = "batch_size" in settings
        optimizer = BGD.paper(
            problem.model.parameters(), 0.1, seed=1, memory=100 if mean else None, reduction="mean" if mean else "sum"
        )
        optimizer.step(problem.closure(optimizer, "mean" if mean else "sum"), **settings)
        optimizers.append(optimizer)
    windowed, free = optimizers
    for p, q in zip(windowed._params(), free._params(), strict=True):
        expected = Gaussian(free.state[q]["mean"], free.state[q]["std"])
        tether(expected, windowed.state[p]["prior_mean"], 0.1, 0.2)
        torch.testing.assert_close(windowed.state[p]["mean"], expected.mean, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(windowed.state[p]["std"], expected.std, rtol=1e-10, atol=1e-12)


def test_examples_that_nobody_counts_are_an_error_that_changes_nothing(problem: Problem):
    optimizer = BGD.paper(problem.model.parameters(), 0.1, memory=100)
    before = posterior(optimizer)
    with pytest.raises(RuntimeError, match=r"memory counts examples.*batch_size"):
        optimizer.step(problem.closure(optimizer))
    assert all(map(torch.equal, posterior(optimizer), before))


def test_it_resumes_bit_for_bit():
    whole, resumed = network(), network()
    optimizer, other = BGD(whole.parameters(), memory=100, seed=1), BGD(resumed.parameters(), memory=9, seed=2)
    train(optimizer, whole, 5)
    other.load_state_dict(optimizer.state_dict())
    for model, one in ((whole, optimizer), (resumed, other)):
        train(one, model, 5, seed=7)
    assert all(map(torch.equal, posterior(optimizer), posterior(other)))


def test_a_state_dict_without_prior_means_is_refused():
    model = network()
    without, windowed = BGD(model.parameters()), BGD(model.parameters(), memory=9)
    with pytest.raises(ValueError, match="has no 'prior_mean'"):
        windowed.load_state_dict(without.state_dict())
    state = without.state_dict()
    state["param_groups"][0]["memory"] = 9
    with pytest.raises(ValueError, match=r"'memory'\] is 9, and state\[0\] has no 'prior_mean'"):
        without.load_state_dict(state)
    without.param_groups[0]["memory"] = 9
    with pytest.raises(RuntimeError, match="memory was set after"):
        train(without, model, 1)


@pytest.mark.parametrize("memory", [0, -1, float("inf"), "long", True])
def test_an_impossible_window_is_named(memory):
    with pytest.raises(ValueError, match=f"memory must be None or a positive number, got {memory!r}"):
        BGD([nn.Parameter(torch.zeros(1))], memory=memory)
