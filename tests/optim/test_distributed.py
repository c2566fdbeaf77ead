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
    optimizer = BGD(problem.model.parameters(), std_init=0.1, seed=3, **settings)
    for _ in range(STEPS):
        loss = optimizer.step(closure_of(problem.model, problem.x, problem.y))
    assert loss is not None
    return [*posterior(optimizer), *problem.weights(), loss]


def part_of(problem: Problem, rank: int, equal: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    cut = 10 if equal else 7
    rows = slice(0, cut) if rank == 0 else slice(cut, 20)
    return problem.x[rows], problem.y[rows]


def worker(rank: int, folder: str, mode: str) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    torch.manual_seed(1 + rank)  # ranks that disagree about the weights and the seed: rank 0 decides
    problem = Problem()
    params = problem.model.parameters()
    model: nn.Module = problem.model
    x, y = problem.x, problem.y
    common: dict[str, Any] = {"std_init": 0.1, "seed": 3 + rank}
    reduction, size = "sum", None
    try:
        if mode == "samples":
            optimizer: BGD = DistributedBGD(params, split="samples", **common)
        elif mode == "samples-odd":
            optimizer = DistributedBGD(params, split="samples", mc_samples=5, **common)
        elif mode == "samples-batched":
            optimizer = DistributedBGD(params, split="samples", **common)
        elif mode == "batch":
            optimizer = DistributedBGD(params, split="batch", **common)
            x, y = part_of(problem, rank)
        elif mode == "batch-mean":
            optimizer = DistributedBGD(params, split="batch", reduction="mean", **common)
            x, y = part_of(problem, rank)
            reduction, size = "mean", len(x)
        elif mode == "batch-wrapped":
            optimizer = DistributedBGD(params, split="batch", **common)
            x, y = part_of(problem, rank, equal=True)
            model = DistributedDataParallel(problem.model)
        elif mode == "trap":  # the wrapper averages gradients over ranks with different noise
            model = DistributedDataParallel(problem.model)
            optimizer = DistributedBGD(params, split="samples", **common)
        elif mode == "plain":
            model = DistributedDataParallel(problem.model)
            optimizer = BGD(params, **common)
        else:
            raise AssertionError(mode)
        if mode == "samples-batched":
            step = optimizer.batched(
                model, lambda net, x, y: F.cross_entropy(net(x), y, reduction="sum"), compile=False
            )
            for _ in range(STEPS):
                loss = step(x, y)
        else:
            for _ in range(STEPS):
                loss = optimizer.step(closure_of(model, x, y, reduction), batch_size=size)
        torch.save([*posterior(optimizer), *problem.weights(), loss], f"{folder}/{rank}.pt")
    except RuntimeError as error:
        Path(f"{folder}/{rank}.txt").write_text(str(error))
    dist.barrier()
    dist.destroy_process_group()


def run(folder: Path, mode: str) -> list[Any]:
    mp.spawn(worker, (str(folder), mode), nprocs=2)
    errors = [(folder / f"{rank}.txt") for rank in range(2)]
    if errors[0].exists():
        return [e.read_text() for e in errors]
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("mode", ["samples", "samples-odd", "samples-batched", "batch", "batch-mean", "batch-wrapped"])
def test_two_ranks_equal_one_process(tmp_path: Path, mode: str) -> None:
    first, second = run(tmp_path, mode)
    expected = single(mc_samples=5) if mode == "samples-odd" else single()
    if mode == "batch-mean":
        expected[-1] = expected[-1] / 20
    if mode == "batch-wrapped":
        expected[-1] = expected[-1]
    torch.testing.assert_close(first, expected, rtol=1e-10, atol=1e-12)
    assert all(map(torch.equal, first, second))


@pytest.mark.parametrize(("mode", "message"), [("trap", 'split="batch"'), ("plain", "DistributedBGD")])
def test_a_wrapper_that_averages_gradients_is_refused(tmp_path: Path, mode: str, message: str) -> None:
    for error in run(tmp_path, mode):
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


def test_without_a_process_group_it_says_so() -> None:
    with pytest.raises(RuntimeError, match="init_process_group"):
        DistributedBGD([nn.Parameter(torch.zeros(2))], split="samples")


def test_more_ranks_than_samples_is_refused(tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/alone", rank=0, world_size=1)
    try:
        p = nn.Parameter(torch.zeros(2))
        with pytest.raises(ValueError, match="'shards'"):
            DistributedBGD([p], split="shards")  # type: ignore[arg-type]
        optimizer = DistributedBGD([p], split="samples", mc_samples=1)
        with pytest.raises(TypeError, match="state_dict"):
            optimizer.__getstate__()
    finally:
        dist.destroy_process_group()
