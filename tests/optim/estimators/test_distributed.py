"""Two gloo ranks give the update of one process, whichever way they share its work."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from problems import Problem, posterior
from shared_bgd import PAPER, shared_bgd
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from bgd import BGD, DistributedBGD

STEPS = 3


def closure_of(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, reduction: str = "sum"
) -> Callable[[], torch.Tensor]:
    def closure() -> torch.Tensor:
        loss = F.cross_entropy(model(x), y, reduction=reduction)
        loss.backward()
        return loss

    return closure


def single(**settings: Any) -> list[torch.Tensor]:
    """What one process makes of it."""
    torch.manual_seed(1)
    problem = Problem()
    reduction, size = ("mean", 20) if "memory" in settings else ("sum", None)  # a window counts examples
    settings = {"std_init": 0.1, "seed": 3, "reduction": reduction} | PAPER | settings
    optimizer = shared_bgd(problem.model.parameters(), **settings)
    for _ in range(STEPS):
        loss = optimizer.step(closure_of(problem.model, problem.x, problem.y, reduction), batch_size=size)
    assert loss is not None
    return [*posterior(optimizer), *problem.weights(), loss]


def part_of(problem: Problem, rank: int, equal: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    cut = 10 if equal else 7
    rows = slice(0, cut) if rank == 0 else slice(cut, 20)
    return problem.x[rows], problem.y[rows]


def relative(p: torch.Tensor) -> float:
    """A std that depends on the weights, which differ between the ranks at first."""
    return 0.3 * float(p.detach().abs().mean())


REFUSED = ("trap", "trap-inside", "trap-batched", "plain", "examples-uneven-wrapped")
EXAMPLES = ("examples", "examples-closure", "examples-wrapped", "examples-accumulated", "examples-resumed")
EXAMPLES += ("examples-window",)
PAPER_ON_RANKS = {"estimator": "shared", "reduction": "sum", "max_move": None, "boost": None}
MODES = ("samples", "samples-odd", "samples-batched", "samples-antithetic", "samples-function")
MODES += (
    "samples-added",
    "batch",
    "batch-mean",
    "batch-window",
    "batch-wrapped",
    "examples-uneven",
    *EXAMPLES,
    *REFUSED,
)
SETTINGS: dict[str, dict[str, Any]] = {
    "samples-odd": {"mc_samples": 5},
    "samples-antithetic": {"mc_samples": 2, "antithetic": True},  # the two of a pair are on different ranks
    "batch-window": {"memory": 200},
    "samples-function": {"std_init": relative, "std_max": "init"},
}


def worker(rank: int, folder: str) -> None:
    """One rank: every way of sharing the work in turn, each result (or refusal) in a file."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    for mode in MODES:
        torch.manual_seed(1 + rank)  # ranks that disagree about the weights and the seed: rank 0 decides
        try:
            torch.save(run_mode(mode, rank), f"{folder}/{mode}-{rank}.pt")
        except RuntimeError as error:
            Path(f"{folder}/{mode}-{rank}.txt").write_text(f"{type(error).__name__}: {error}")
        dist.barrier()
    dist.destroy_process_group()


def settings_of(mode: str) -> dict[str, Any]:
    """Where noise differs, hardly any: the gradients of one process are left."""
    std, memory = 1e-4 if "uneven" in mode else None, 200 if "window" in mode else None
    return {"boost": 64.0, "std_init": std, "memory": memory}


def train_examples(model: nn.Module, optimizer: BGD, x: torch.Tensor, y: torch.Tensor, mode: str) -> None:
    """A loop with noise of its own for each example, as one would write it on one process."""
    for _ in range(STEPS):
        if mode == "examples-closure":
            optimizer.step(closure_of(model, x, y, "mean"))
            continue
        optimizer.zero_grad()
        parts = 2 if mode == "examples-accumulated" else 1
        for xs, ys in zip(x.chunk(parts), y.chunk(parts), strict=True):
            (F.cross_entropy(model(xs), ys) / parts).backward()
        optimizer.step()
        if mode == "examples-resumed":
            optimizer.load_state_dict(optimizer.state_dict())


def run_examples(mode: str, rank: int) -> list[torch.Tensor]:
    problem = Problem()
    optimizer = DistributedBGD(problem.model.parameters(), seed=3 + rank, **settings_of(mode))
    model = DistributedDataParallel(problem.model) if "wrapped" in mode else problem.model
    x, y = part_of(problem, rank, equal="uneven" not in mode)
    if mode == "examples-accumulated":  # as one process, whose first micro-batch is the first half of both parts
        rows = torch.arange(20).view(2, 2, 5)[:, rank].flatten()
        x, y = problem.x[rows], problem.y[rows]
    train_examples(model, optimizer, x, y, mode)
    return [*posterior(optimizer), *problem.weights()]


def single_examples(mode: str) -> list[torch.Tensor]:
    torch.manual_seed(1)
    problem = Problem()
    optimizer = BGD(problem.model.parameters(), seed=3, **settings_of(mode))
    train_examples(problem.model, optimizer, problem.x, problem.y, mode)
    return [*posterior(optimizer), *problem.weights()]


def run_mode(mode: str, rank: int) -> list[torch.Tensor]:
    if mode.startswith("examples"):
        return run_examples(mode, rank)
    problem = Problem()
    model: nn.Module = problem.model
    x, y = problem.x, problem.y
    settings: dict[str, Any] = {**PAPER, "std_init": 0.1, "seed": 3 + rank, **SETTINGS.get(mode, {})}
    reduction, size = "sum", None
    if mode == "batch-wrapped" or mode in REFUSED:
        model = DistributedDataParallel(problem.model)
    if mode == "trap-inside":
        model = nn.Sequential(model)
    if mode.startswith("batch"):
        x, y = part_of(problem, rank, equal=mode == "batch-wrapped")
    if mode in ("batch-mean", "batch-window"):
        settings["reduction"] = reduction = "mean"
        size = len(x)
    params = list(problem.model.parameters())
    if mode == "plain":
        optimizer = shared_bgd(params, **settings)
    else:  # in "trap" the wrapper averages gradients over ranks with different noise
        early = params[:2] if mode == "samples-added" else params
        optimizer = DistributedBGD(
            early, split="batch" if mode.startswith("batch") else "samples", **(PAPER_ON_RANKS | settings)
        )
        if mode == "samples-added":
            optimizer.add_param_group({"params": params[2:]})
    batched = optimizer.batched(model, lambda net, x, y: F.cross_entropy(net(x), y, reduction="sum"), compile=False)
    for _ in range(STEPS):
        if mode.endswith("-batched"):
            loss = batched(x, y)
        else:
            loss = optimizer.step(closure_of(model, x, y, reduction), batch_size=size)
    return [*posterior(optimizer), *problem.weights(), loss]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of two ranks, which are started once for all tests."""
    path = tmp_path_factory.mktemp("ranks")
    mp.spawn(worker, (str(path),), nprocs=2)
    return path


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in REFUSED and "examples" not in mode])
def test_two_ranks_equal_one_process(folder: Path, mode: str) -> None:
    first, second = (torch.load(folder / f"{mode}-{rank}.pt", weights_only=True) for rank in range(2))
    expected = single(**SETTINGS.get(mode, {}))
    if mode == "batch-mean":
        expected[-1] = expected[-1] / 20
    torch.testing.assert_close(first, expected, rtol=1e-10, atol=1e-12)
    assert all(map(torch.equal, first, second))


@pytest.mark.parametrize("mode", EXAMPLES)
def test_two_ranks_give_each_example_the_noise_of_one_process(folder: Path, mode: str) -> None:
    first, second = (torch.load(folder / f"{mode}-{rank}.pt", weights_only=True) for rank in range(2))
    torch.testing.assert_close(first, single_examples(mode), rtol=1e-9, atol=1e-11)
    assert all(map(torch.equal, first, second))


def test_parts_of_unequal_size_add_up_too(folder: Path) -> None:
    first, second = (torch.load(folder / f"examples-uneven-{rank}.pt", weights_only=True) for rank in range(2))
    assert all(map(torch.equal, first, second))
    torch.manual_seed(1)
    before = torch.cat([w.flatten() for w in Problem().weights()])
    moved, expected = (
        torch.cat([w.flatten() for w in result[-4:]]) - before for result in (first, single_examples("examples-uneven"))
    )
    torch.testing.assert_close(moved, expected, rtol=0.02, atol=float(expected.abs().max()) / 500)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("trap", 'split="batch"'),
        ("trap-inside", 'split="batch"'),
        ("trap-batched", 'split="batch"'),
        ("plain", "DistributedBGD"),
        ("examples-uneven-wrapped", "differ in size, 20 examples"),
    ],
)
def test_a_wrapper_that_averages_gradients_is_refused(folder: Path, mode: str, message: str) -> None:
    for rank in range(2):
        error = (folder / f"{mode}-{rank}.txt").read_text()
        assert "DistributedDataParallel" in error
        assert message in error


def test_the_trap_is_real() -> None:
    """Averaging g over ranks before it meets its eps shrinks E[g eps] by the number of ranks."""
    generator = torch.Generator().manual_seed(0)
    std, h = 0.5, 4.0
    eps = torch.randn(2, 100_000, generator=generator)  # one row per rank
    g = h * std * eps
    right = (g * eps).mean()
    wrong = (g.mean(0) * eps).mean()
    assert float(right) == pytest.approx(h * std, rel=0.02)
    assert float(wrong) == pytest.approx(h * std / 2, rel=0.02)


def test_without_a_process_group_it_is_refused() -> None:
    with pytest.raises(RuntimeError, match="init_process_group"):
        DistributedBGD([nn.Parameter(torch.zeros(2))], split="samples")


def test_more_ranks_than_samples_is_refused(tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/alone", rank=0, world_size=1)
    try:
        p = nn.Parameter(torch.zeros(2))
        with pytest.raises(ValueError, match='use split="batch"'):
            DistributedBGD([p], split="samples", estimator="per_example")
        with pytest.raises(ValueError, match="'shards'"):
            DistributedBGD([p], split="shards")  # type: ignore[arg-type]
        optimizer = DistributedBGD([p], split="samples", mc_samples=1)
        with pytest.raises(TypeError, match="state_dict"):
            optimizer.__getstate__()
    finally:
        dist.destroy_process_group()
