"""All networks in one pass: the same numbers as the loop."""

import copy
import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from problems import Problem, posterior
from shared_bgd import PAPER, shared_bgd
from torch import nn

from bgd import BGD, labels_trick
from bgd.optim import update as updates
from bgd.optim.compilation import CompiledOrEager, can_compile
from bgd.optim.estimators import batched

needs_compiler = pytest.mark.skipif(not can_compile(), reason="no C++ compiler on this machine")


def objective(net: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(net(x), y, reduction="sum")


def loop_and_batched(
    dtype: torch.dtype = torch.float64, steps: int = 4, chunk_size: int | None = None, compile: bool = False, **settings
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    results = []
    for path in ("loop", "batched"):
        torch.manual_seed(1)
        problem = Problem(dtype)
        optimizer = shared_bgd(problem.model.parameters(), std_init=0.1, seed=3, **(PAPER | settings))
        step = optimizer.batched(problem.model, objective, chunk_size=chunk_size, compile=compile)
        for _ in range(steps):
            loss = optimizer.step(problem.closure(optimizer)) if path == "loop" else step(problem.x, problem.y)
        if path == "batched":
            assert step.path == ("compiled" if compile else "eager")
        results.append([*posterior(optimizer), *problem.weights(), loss])
    return results[0], results[1]


@pytest.mark.parametrize("chunk_size", [None, 1, 3, 4, 100])
@pytest.mark.parametrize("antithetic", [False, True])
def test_equals_the_loop_in_float64(chunk_size: int | None, antithetic: bool) -> None:
    loop, fast = loop_and_batched(chunk_size=chunk_size, antithetic=antithetic)
    torch.testing.assert_close(fast, loop, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("noise", ["torch", "hash"])
def test_equals_the_loop_in_float32(noise: str) -> None:
    loop, fast = loop_and_batched(torch.float32, noise=noise)
    torch.testing.assert_close(fast, loop, rtol=1e-4, atol=1e-5)


def test_equals_the_loop_with_implicit_iterations() -> None:
    loop, fast = loop_and_batched(implicit_iterations=3, steps=2)
    torch.testing.assert_close(fast, loop, rtol=1e-11, atol=1e-12)


@needs_compiler
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-4)])
def test_compiled_equals_the_loop(dtype: torch.dtype, tolerance: float) -> None:
    loop, fast = loop_and_batched(dtype, compile=True, lr=0.3, noise="hash" if dtype == torch.float32 else "torch")
    torch.testing.assert_close(fast, loop, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("width", "path"), [(4, "eager"), (400, "loop")])
def test_without_a_compiler_large_networks_run_one_by_one(width: int, path: str) -> None:
    model = nn.Sequential(nn.Linear(100, width), nn.Linear(width, 3))
    optimizer = shared_bgd(model.parameters(), std_init=0.01)
    assert optimizer.batched(model, objective, compile=False).path == path
    assert optimizer.batched(model, objective, compile=False, chunk_size=2).path == "eager"


@needs_compiler
def test_a_scheduler_does_not_recompile(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.1, **PAPER)
    step = optimizer.batched(problem.model, objective, compile=True)
    step(problem.x, problem.y)
    counters = torch._dynamo.utils.counters["stats"]
    before = counters["unique_graphs"]
    for lr in (0.5, 0.25, 0.125):
        optimizer.param_groups[0]["lr"] = lr
        step(problem.x, problem.y)
    assert counters["unique_graphs"] == before


def test_bfloat16_weights(problem: Problem) -> None:
    loop, fast = loop_and_batched(torch.bfloat16, steps=1)
    torch.testing.assert_close(fast[:8], loop[:8], rtol=0.05, atol=0.05)


def test_tied_frozen_and_unused_parameters() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
            self.b.weight = self.a.weight
            self.frozen, self.unused = nn.Linear(4, 4), nn.Linear(4, 4)
            self.frozen.requires_grad_(False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(torch.tanh(self.frozen(torch.tanh(self.a(x)))))

    results = []
    for path in ("loop", "batched"):
        torch.manual_seed(2)
        model = Net().double()
        before = [p.clone() for p in (*model.frozen.parameters(), *model.unused.parameters())]
        optimizer = shared_bgd(model.parameters(), std_init=0.1, seed=1, **PAPER)
        x, y = torch.randn(8, 4).double(), torch.randint(4, (8,))

        def closure(model=model, x=x, y=y) -> torch.Tensor:
            loss = objective(model, x, y)
            loss.backward()
            return loss

        step = optimizer.batched(model, objective, compile=False)
        for _ in range(3):
            optimizer.step(closure) if path == "loop" else step(x, y)
        assert all(map(torch.equal, before, (*model.frozen.parameters(), *model.unused.parameters())))
        results.append(posterior(optimizer))
    torch.testing.assert_close(*results, rtol=1e-12, atol=1e-12)


def test_dropout_draws_a_mask_per_network() -> None:
    model = nn.Sequential(nn.Linear(4, 200), nn.Dropout(0.5))
    optimizer = shared_bgd(model.parameters(), std_init=1e-6, mc_samples=3)
    seen = []

    def watching(net: Any, x: torch.Tensor) -> torch.Tensor:
        out = net(x)
        seen.append(out)
        return out.sum()

    step = optimizer.batched(model, watching, compile=False)
    step(torch.ones(1, 4))
    stacked = torch._C._functorch.get_unwrapped(torch._C._functorch.get_unwrapped(seen[0])).squeeze()
    masks = (stacked == 0).reshape(3, 200)
    assert not torch.equal(masks[0], masks[1])
    assert step.path == "eager"


def test_labels_trick_runs_batched() -> None:
    problem = Problem()
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.1, seed=1, **PAPER)

    def with_trick(net: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return labels_trick(net(x), y, reduction="sum")

    rows = problem.y != 1
    before = problem.model[2].weight[1].detach().clone()
    step = optimizer.batched(problem.model, with_trick, compile=False)
    step(problem.x[rows], problem.y[rows])
    assert step.path == "eager"
    assert torch.equal(problem.model[2].weight[1], before)  # the absent label's head does not move


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=needs_compiler)])
def test_batch_normalisation_falls_back_to_the_loop_with_one_warning(compile: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 2))
    optimizer = shared_bgd(model.parameters(), mc_samples=4)
    step = optimizer.batched(model, objective, compile=compile)
    x, y = torch.randn(8, 4), torch.randint(2, (8,))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            step(x, y)
    warned = [w for w in caught if issubclass(w.category, RuntimeWarning) and "loop path" in str(w.message)]
    assert len(warned) == 1
    assert "batch_norm" in str(warned[0].message) or "in-place" in str(warned[0].message)
    assert warned[0].filename == __file__
    assert step.path == "loop"
    assert int(model[1].num_batches_tracked) == 3


def test_control_flow_that_depends_on_data_falls_back_to_the_loop() -> None:
    class Branching(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out = super().forward(x)
            return out if out.detach().sum().item() > 0 else 2 * out

    model = Branching(4, 2)
    optimizer = shared_bgd(model.parameters(), mc_samples=4)
    step = optimizer.batched(model, objective, compile=False)
    with pytest.warns(RuntimeWarning, match="loop path"):
        step(torch.randn(8, 4), torch.randint(2, (8,)))
    step(torch.randn(8, 4), torch.randint(2, (8,)))


def test_a_failing_compiler_falls_back_to_eager(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> Any:
        def fail(*_: Any) -> Any:
            raise RuntimeError("compiler on fire")

        return fail

    monkeypatch.setattr(batched.torch, "compile", broken)
    optimizer = shared_bgd(problem.model.parameters(), **PAPER)
    step = optimizer.batched(problem.model, objective, compile=True)
    with pytest.warns(RuntimeWarning, match="compiler on fire.*eager path"):
        step(problem.x, problem.y)
    step(problem.x, problem.y)


def test_a_bad_batch_is_an_error_and_no_reason_to_fall_back(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), **PAPER)
    step = optimizer.batched(problem.model, objective, compile=False)
    before = posterior(optimizer)
    with pytest.raises(RuntimeError, match=r"shapes|size"):
        step(problem.x[:, :3], problem.y)
    assert step.path == "eager"
    assert all(map(torch.equal, posterior(optimizer), before))
    problem.x[0, 0] = float("nan")
    with pytest.raises(FloatingPointError):
        step(problem.x, problem.y)
    assert step.path == "eager"


def test_parameters_of_another_model_are_refused(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), **PAPER)
    step = optimizer.batched(nn.Linear(6, 3).double(), objective, compile=False)
    with pytest.raises(ValueError, match="which the model does not"):
        step(problem.x, problem.y)
    with pytest.raises(ValueError, match=r"chunk_size.*0"):
        optimizer.batched(problem.model, objective, chunk_size=0)


def test_mean_reduction(problem: Problem) -> None:
    def mean(net: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(net(x), y)

    results = []
    for reduction, fn in (("sum", objective), ("mean", mean)):
        torch.manual_seed(1)
        p = Problem()
        optimizer = shared_bgd(p.model.parameters(), reduction=reduction, seed=1, **PAPER)
        size = len(p.x) if reduction == "mean" else None
        optimizer.batched(p.model, fn, compile=False)(p.x, p.y, batch_size=size)
        results.append(posterior(optimizer))
    torch.testing.assert_close(*results, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="batch_size"):
        shared_bgd(problem.model.parameters(), reduction="mean").batched(problem.model, mean)(problem.x, problem.y)


class Remembers(nn.Module):
    """Assigns a buffer in forward."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.register_buffer("average", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.average = 0.9 * self.average + 0.1 * x.detach().mean(0)
        return self.linear(x)


def test_a_model_that_assigns_its_buffers_takes_the_loop() -> None:
    torch.manual_seed(0)
    model = Remembers()
    optimizer = shared_bgd(model.parameters(), mc_samples=2)
    step = optimizer.batched(model, objective, compile=False)
    x, y = torch.ones(8, 4), torch.zeros(8, dtype=torch.int64)
    with pytest.warns(RuntimeWarning, match="it assigns its buffer 'average' in forward"):
        step(x, y)
    assert step.path == "loop"
    torch.testing.assert_close(model.average, torch.full((4,), 0.19))  # one move for each of the two networks
    assert model(x).isfinite().all()


def test_a_path_that_fails_leaves_no_trace_in_torchs_generator() -> None:
    """Else a resumed run, which tries and fails again, would draw other dropout than one that was never stopped."""

    def start() -> tuple[nn.Module, BGD, Any]:
        torch.manual_seed(2)
        model = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.5), nn.BatchNorm1d(16), nn.Linear(16, 3))
        optimizer = shared_bgd(model.parameters(), std_init=0.1, seed=3)
        return model, optimizer, optimizer.batched(model, objective, compile=False)

    x, y = torch.randn(20, 6), torch.arange(20) % 3
    model, optimizer, step = start()
    torch.manual_seed(9)
    with pytest.warns(RuntimeWarning, match="continues with the loop path"):
        step(x, y)
    saved = model.state_dict(), optimizer.state_dict(), torch.get_rng_state()
    saved = copy.deepcopy(saved)
    step(x, y)
    resumed, its_optimizer, its_step = start()
    resumed.load_state_dict(saved[0])
    its_optimizer.load_state_dict(saved[1])
    torch.set_rng_state(saved[2])
    with pytest.warns(RuntimeWarning, match="continues with the loop path"):
        its_step(x, y)
    for a, b in zip(model.state_dict().values(), resumed.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_where_warnings_are_errors_a_failed_compilation_costs_no_second_update(monkeypatch) -> None:
    def no_compiler(_: Any) -> Any:
        def fail(*args: Any) -> Any:
            raise RuntimeError("no compiler today")

        return fail

    moved = []
    for broken in (False, True):
        torch.manual_seed(1)
        problem = Problem()
        optimizer = shared_bgd(problem.model.parameters(), std_init=0.3, seed=0)
        step = optimizer.batched(problem.model, objective, compile=broken)
        if broken:
            monkeypatch.setattr(torch, "compile", lambda f: f)
            mover = CompiledOrEager(updates._update_sums)
            mover.compile, mover._compiled = True, no_compiler(None)
            monkeypatch.setattr("bgd.optim.bgd.compiled_update", lambda kinds, mover=mover: mover)
            before = posterior(optimizer)
            with pytest.raises(RuntimeWarning):  # as all warnings in the tests
                step(problem.x, problem.y)
            assert optimizer.steps == 0
            assert all(map(torch.equal, before, posterior(optimizer)))
        step(problem.x, problem.y)
        assert optimizer.steps == 1
        moved.append(posterior(optimizer))
    torch.testing.assert_close(*moved)


def test_each_kind_of_network_has_a_compiled_update_of_its_own() -> None:
    """torch.compile allows few graphs for one code object, and then goes on uncompiled without a word."""
    kinds = [((torch.Size([n]), torch.float32),) for n in range(20)]
    movers = [updates.compiled_update(kind) for kind in kinds]
    assert len({id(mover.function.__code__) for mover in movers}) == 20
    assert updates.compiled_update(kinds[3]) is movers[3]


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=needs_compiler)])
def test_an_objective_that_calls_the_model_instead_of_net_is_refused(problem: Problem, compile: bool) -> None:
    optimizer = shared_bgd(problem.model.parameters())
    before = posterior(optimizer)
    step = optimizer.batched(problem.model, lambda _, x, y: objective(problem.model, x, y), compile=compile)
    with pytest.raises(ValueError, match="never calls net"):
        step(problem.x, problem.y)
    assert all(torch.equal(a, b) for a, b in zip(before, posterior(optimizer), strict=True))


def test_a_gradient_of_zero_has_other_reasons_too(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters())
    step = optimizer.batched(problem.model, lambda net, x, y: 0 * objective(net, x, y), compile=False)
    state = torch.get_rng_state()
    step(problem.x, problem.y)
    assert optimizer.steps == 1
    assert torch.equal(torch.get_rng_state(), state)
