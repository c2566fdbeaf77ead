"""Ordinary torch citizenship: groups, state, checkpoints, copies, precisions, schedulers, compiled models."""

import copy
import io
import pickle
import warnings
from typing import Any

import pytest
import torch
from problems import Problem, posterior
from shared_bgd import PAPER, shared_bgd
from torch import nn

from bgd import BGD


def round_trip(state: dict[str, Any]) -> dict[str, Any]:
    """Through a file, as a checkpoint goes, with nothing but plain data allowed."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


def run(problem: Problem, optimizer: BGD, steps: int) -> None:
    for _ in range(steps):
        optimizer.step(problem.closure(optimizer))


# --- settings


def test_groups_have_their_own_std_and_lr(problem: Problem) -> None:
    first, last = problem.model[0], problem.model[2]
    optimizer = shared_bgd(
        [{"params": first.parameters(), "std_init": 0.3, "lr": 0.0}, {"params": last.parameters()}], std_init=0.1
    )
    assert float(optimizer.state[first.weight]["std"].mean()) == pytest.approx(0.3)
    assert float(optimizer.state[last.weight]["std"].mean()) == pytest.approx(0.1)
    before = problem.weights()
    run(problem, optimizer, 1)
    assert torch.equal(first.weight, before[0])  # eta 0: the mean does not move, the std does not
    assert not torch.equal(optimizer.state[first.weight]["std"], torch.full_like(before[0], 0.3))
    assert not torch.equal(last.weight, before[2])


def test_std_init_as_function_tensor_or_tensors() -> None:
    p, q = nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(4))
    by_function = shared_bgd([p, q], std_init=lambda w: 1 / w.numel())
    assert torch.equal(by_function.state[p]["std"], torch.full((2, 3), 1 / 6))
    assert torch.equal(by_function.state[q]["std"], torch.full((4,), 1 / 4))
    rows = torch.tensor([[0.1], [0.2]])
    assert torch.equal(shared_bgd([p], std_init=rows).state[p]["std"], rows.expand(2, 3))
    each = [torch.rand(2, 3) + 0.1, torch.rand(4) + 0.1]
    by_list = shared_bgd([p, q], std_init=each)
    assert torch.equal(by_list.state[p]["std"], each[0])
    assert torch.equal(by_list.state[q]["std"], each[1])
    round_trip(by_function.state_dict())  # a function has done its work: it is not in the checkpoint


def test_std_max_init_caps_each_weight_at_its_own_initial_std(problem: Problem) -> None:
    optimizer = shared_bgd(
        problem.model.parameters(), std_init=lambda w: torch.linspace(0.05, 0.2, w.numel()).view_as(w)
    )  # the default
    initial = {p: optimizer.state[p]["std"].clone() for p in problem.model.parameters()}
    run(problem, optimizer, 20)
    at_the_cap = 0
    for p, cap in initial.items():
        assert bool((optimizer.state[p]["std"] <= cap).all())
        at_the_cap += int((optimizer.state[p]["std"] == cap).sum())
    assert at_the_cap  # noise alone would have carried some above
    free = shared_bgd(problem.model.parameters(), std_init=0.1, **PAPER)
    run(problem, free, 20)
    assert any(bool((free.state[p]["std"] > 0.1).any()) for p in initial)


def test_std_min_is_a_floor(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.3, mc_samples=10, std_min=0.25, std_max=0.31)
    run(problem, optimizer, 20)
    stds = torch.cat([optimizer.state[p]["std"].flatten() for p in problem.model.parameters()])
    assert float(stds.min()) == 0.25
    assert float(stds.max()) == pytest.approx(0.31)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"std_init": 0.0}, "std_init.*0.0"),
        ({"std_init": -0.1}, "-0.1"),
        ({"std_init": float("nan")}, "nan"),
        ({"std_init": "wide"}, "'wide'"),
        ({"std_init": torch.ones(7)}, r"does not fit a parameter of shape \(2, 3\)"),
        ({"std_init": [torch.ones(2, 3), torch.ones(1)]}, "2 tensors for 1 parameters"),
        ({"mc_samples": 0}, "mc_samples.*0"),
        ({"mc_samples": 2.5}, "mc_samples.*2.5"),
        ({"mc_samples": 3, "antithetic": True}, "even, got 3"),
        ({"lr": -1.0}, "lr.*-1.0"),
        ({"lr": float("inf")}, "lr.*inf"),
        ({"std_min": 0.0}, "std_min.*0.0"),
        ({"std_min": 0.5}, "std_init 0.02 lies outside std_min=0.5"),
        ({"std_max": 0.01}, "std_init 0.02 lies outside std_max=0.01"),
        ({"std_max": "initial"}, "'initial'"),
        ({"reduction": "average"}, "'average'"),
        ({"noise": "cuda"}, "'cuda'"),
        ({"nonfinite": "ignore"}, "'ignore'"),
        ({"seed": -3}, "-3"),
        ({"seed": 1, "generator": torch.Generator()}, "not both"),
        ({"implicit_iterations": 0}, "implicit_iterations.*0"),
        ({"implicit_damping": 0.0}, "implicit_damping.*0.0"),
    ],
)
def test_a_bad_argument_is_named_with_its_value(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shared_bgd([nn.Parameter(torch.zeros(2, 3))], **settings)


def test_integer_parameters_are_refused() -> None:
    with pytest.raises(TypeError, match="int64"):
        shared_bgd([torch.zeros(2, dtype=torch.int64)])


def test_a_bad_group_is_not_half_added(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters())
    with pytest.raises(ValueError, match="-2"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))], "std_init": -2.0})
    assert len(optimizer.param_groups) == 1


# --- seeds


def test_seed_generator_and_default() -> None:
    def first_draw(**settings: Any) -> torch.Tensor:
        p = nn.Parameter(torch.zeros(5))
        with shared_bgd([p], std_init=1.0, **settings).sampled():
            return p.detach().clone()

    assert torch.equal(first_draw(seed=0), first_draw(seed=0))
    assert not torch.equal(first_draw(seed=0), first_draw(seed=1))
    generator = torch.Generator().manual_seed(4)
    a, b = first_draw(generator=generator), first_draw(generator=generator)
    assert not torch.equal(a, b)
    assert torch.equal(a, first_draw(generator=torch.Generator().manual_seed(4)))
    torch.manual_seed(11)
    c = first_draw()
    torch.manual_seed(11)
    assert torch.equal(c, first_draw())


@pytest.mark.parametrize("noise", ["torch", "hash"])
def test_the_global_generator_is_never_touched(problem: Problem, noise: Any) -> None:
    before = torch.get_rng_state()
    optimizer = shared_bgd(problem.model.parameters(), noise=noise, antithetic=True)
    run(problem, optimizer, 2)
    with optimizer.sampled():
        pass
    assert torch.equal(torch.get_rng_state(), before)


# --- checkpoints


@pytest.mark.parametrize("settings", [{}, {"noise": "hash"}, {"antithetic": True, "std_max": "init"}])
def test_resumed_equals_uninterrupted_bit_for_bit(settings: dict[str, Any]) -> None:
    whole = Problem()
    start = whole.weights()
    reference = shared_bgd(whole.model.parameters(), std_init=0.1, seed=3, **settings)
    run(whole, reference, 10)

    halves = Problem()
    with torch.no_grad():
        for p, w in zip(halves.model.parameters(), start, strict=True):
            p.copy_(w)
    first = shared_bgd(halves.model.parameters(), std_init=0.1, seed=3, **settings)
    run(halves, first, 4)
    with first.sampled():
        pass
    saved = round_trip({"model": halves.model.state_dict(), "optimizer": first.state_dict()})

    resumed = Problem()
    second = shared_bgd(resumed.model.parameters(), std_init=0.1, seed=99, **settings)
    resumed.model.load_state_dict(saved["model"])
    second.load_state_dict(saved["optimizer"])
    assert (second.steps, second.seed, second.samples_drawn) == (4, 3, 1)
    run(resumed, second, 6)
    assert all(map(torch.equal, posterior(reference), posterior(second)))
    assert all(map(torch.equal, whole.weights(), resumed.weights()))


def test_loading_restores_the_weights_too(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), seed=3)
    run(problem, optimizer, 3)
    saved, weights = round_trip(optimizer.state_dict()), problem.weights()
    run(problem, optimizer, 3)
    optimizer.load_state_dict(saved)
    assert all(map(torch.equal, problem.weights(), weights))


def test_frozen_weights_that_were_set_later_come_back_as_they_were(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters())
    problem.model[0].requires_grad_(False)
    problem.model[0].weight.fill_(7.0)  # such as weights from a file, loaded after the optimizer was made
    run(problem, optimizer, 1)
    saved, weights = round_trip(optimizer.state_dict()), problem.weights()
    other = Problem()
    other.model[0].requires_grad_(False)
    resumed = shared_bgd(other.model.parameters())
    other.model.load_state_dict(problem.model.state_dict())
    resumed.load_state_dict(saved)
    assert all(map(torch.equal, other.weights(), weights))


def test_loaded_state_shares_no_memory_with_the_dict(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), seed=3)
    saved = copy.deepcopy(optimizer.state_dict())
    optimizer.load_state_dict(saved)
    reference = copy.deepcopy(saved)
    run(problem, optimizer, 2)
    for a, b in zip(saved["state"].values(), reference["state"].values(), strict=True):
        assert all(torch.equal(a[key], b[key]) for key in b)


def test_a_foreign_state_dict_is_refused(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters())
    with pytest.raises(ValueError, match="not a state dict of BGD"):
        optimizer.load_state_dict(torch.optim.Adam(problem.model.parameters()).state_dict())
    other = shared_bgd(nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 3)).parameters())
    with pytest.raises(ValueError, match=r"shape \(9, 6\).*shape \(8, 6\)"):
        optimizer.load_state_dict(other.state_dict())


def test_deepcopy_and_pickle_continue_alike(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.named_parameters(), std_init=0.1, seed=3, mc_samples=4)
    run(problem, optimizer, 2)
    twin_problem, twin = copy.deepcopy((problem, optimizer))
    file_problem, from_file = pickle.loads(pickle.dumps((problem, optimizer)))
    for p, o in ((problem, optimizer), (twin_problem, twin), (file_problem, from_file)):
        run(p, o, 3)
    assert all(map(torch.equal, posterior(optimizer), posterior(twin)))
    assert all(map(torch.equal, posterior(optimizer), posterior(from_file)))
    assert twin.steps == from_file.steps == 5


# --- precisions and devices


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_weights_have_a_float32_posterior(dtype: torch.dtype) -> None:
    problem = Problem(dtype)
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.01, seed=3)
    p = problem.model[0].weight
    assert optimizer.state[p]["mean"].dtype == optimizer.state[p]["std"].dtype == torch.float32
    run(problem, optimizer, 30)
    mean = optimizer.state[p]["mean"]
    assert torch.equal(p, mean.to(dtype))
    assert not torch.equal(mean, p.float())  # steps below the weights' rounding are kept
    saved = round_trip(optimizer.state_dict())
    optimizer.load_state_dict(saved)
    assert optimizer.state[p]["mean"].dtype == torch.float32
    assert torch.equal(optimizer.state[p]["mean"], mean)


def test_float32_and_float64_parameters_side_by_side() -> None:
    a, b = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3, dtype=torch.float64))
    optimizer = shared_bgd([a, b], std_init=0.1)

    def closure() -> torch.Tensor:
        loss = a.square().sum().double() + b.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert optimizer.state[a]["std"].dtype == torch.float32
    assert optimizer.state[b]["std"].dtype == torch.float64
    eps = optimizer._training_noise([a, b], [0])
    assert not torch.allclose(eps[0].double(), eps[1])


# --- torch's own tools


def test_learning_rate_schedulers_work(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1)
    seen = []
    for _ in range(4):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step(problem.closure(optimizer))
        scheduler.step()
    assert seen == pytest.approx([1.0, 1.0, 0.1, 0.1])
    # ... and what the scheduler sets is what a step uses
    frozen = problem.weights()
    optimizer.param_groups[0]["lr"] = 0.0
    run(problem, optimizer, 1)
    assert all(map(torch.equal, problem.weights(), frozen))


def test_a_scheduler_accepts_batched_steps(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
    step = optimizer.batched(
        problem.model, lambda net, x, y: nn.functional.cross_entropy(net(x), y, reduction="sum"), compile=False
    )
    step(problem.x, problem.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of a scheduler that is ahead of its optimizer
        scheduler.step()


def test_an_empty_group_is_a_group(problem: Problem) -> None:
    optimizer = shared_bgd([{"params": problem.model.parameters()}, {"params": []}])
    run(problem, optimizer, 1)
    assert [len(group["params"]) for group in optimizer.param_groups] == [4, 0]


def test_step_hooks_run(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters())
    calls = []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    run(problem, optimizer, 2)
    assert calls == [1, 1]
    step = optimizer.batched(
        problem.model, lambda net, x, y: nn.functional.cross_entropy(net(x), y, reduction="sum"), compile=False
    )
    step(problem.x, problem.y)
    assert calls == [1, 1, 1]


def test_compiled_models_give_the_same_update() -> None:
    results = []
    for compiled in (False, True):
        torch.manual_seed(1)
        problem = Problem()
        original = problem.model
        if compiled:
            problem.model = torch.compile(original, backend="aot_eager")
        optimizer = shared_bgd(original.parameters(), std_init=0.1, seed=3)
        run(problem, optimizer, 3)
        results.append(posterior(optimizer))
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-12)


def test_named_parameters_are_accepted(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.named_parameters())
    assert optimizer.param_groups[0]["param_names"][0] == "0.weight"
    round_trip(optimizer.state_dict())


def test_a_step_inside_sampled_leaves_the_mean_alone() -> None:
    model = nn.Linear(3, 1)
    optimizer = shared_bgd(model.parameters(), std_init=0.1, implicit_iterations=3)
    before = model.weight.detach().clone()

    def closure() -> torch.Tensor:
        loss = model(torch.ones(2, 3)).sum()
        loss.backward()
        return loss

    with optimizer.sampled(), pytest.raises(RuntimeError, match=r"inside sampled"):
        optimizer.step(closure)
    assert torch.equal(model.weight, before)
    assert torch.equal(optimizer.state[model.weight]["mean"], before)


def test_a_std_given_by_a_function_can_be_pickled() -> None:
    model = nn.Linear(3, 1)
    optimizer = shared_bgd(model.parameters(), std_init=lambda p: 0.1 * p.detach().abs() + 0.01)
    again = pickle.loads(pickle.dumps(optimizer))
    for mine, other in zip(optimizer.state.values(), again.state.values(), strict=True):
        assert torch.equal(mine["std"], other["std"])
    with pytest.raises(ValueError, match="std_init 'not kept by a copy' does not fit"):
        again.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})


def test_the_settings_come_back_with_the_posterior(problem: Problem) -> None:
    """Else a run with ten samples and no cap would go on with two and no cap, which collapses."""
    saved = shared_bgd(
        problem.model.parameters(), reduction="mean", antithetic=True, nonfinite="skip", implicit_iterations=3, **PAPER
    )
    resumed = shared_bgd(problem.model.parameters())
    resumed.load_state_dict(saved.state_dict())
    for name in ("mc_samples", "reduction", "antithetic", "nonfinite", "implicit_iterations"):
        assert getattr(resumed, name) == getattr(saved, name), name


@pytest.mark.parametrize("key", ["std", "mc_samples", "weight_decay"])
def test_a_key_of_a_group_that_would_do_nothing_is_refused(problem: Problem, key: str) -> None:
    with pytest.raises(ValueError, match=f"not '{key}'"):
        shared_bgd([{"params": problem.model.parameters(), key: 0.5}])
    shared_bgd([{"params": problem.model.parameters(), "name": "all", "initial_lr": 1.0}])
