"""Two processes, each with its part of every batch, behind DistributedDataParallel."""

import warnings
from pathlib import Path

import torch
import torch.multiprocessing as mp

from recipes import batches, by_hand, grouped, posterior, run


def worker(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(rank)  # rank 0 decides
    warnings.simplefilter("ignore")
    own = [(x.chunk(2)[rank], y.chunk(2)[rank]) for x, y in batches()]
    names = run("ddp", rank=rank, ranks=2, rendezvous=f"file://{folder}/rendezvous", batches=own)
    torch.save(posterior(names["optimizer"]), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_ranks_are_one_process(tmp_path: Path) -> None:
    mp.spawn(worker, (str(tmp_path),), nprocs=2)
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    assert torch.equal(first, second)
    torch.testing.assert_close(first, by_hand(grouped(1)))
