"""What the exact head costs: with the number of features D, of members, of examples in a batch, and of workers.

Times are medians over turns that take every variant once, so that a busy machine slows them alike; run it with
``OMP_NUM_THREADS=1 python benchmarks/exact.py``. ``--workers 1 2`` adds shards on Ray.

Columns of the first table, in microseconds an example:
    update    ``absorb(innovation)``: the inverse is kept up to date, O(D^2).
    in place  the same into the head's own memory.
    6 members the same with six members, for each member.
    solve     what inverting L afresh after the batch would cost instead, O(D^3 / B).
Columns of the second table, in microseconds an example:
    sums      ``statistics.add_`` with blocks of 1,024, products in float32 (and in float64).
    solve     one Cholesky solution, in seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from bgd.exact import absorb, absorb_, init, innovation, statistics
from bgd.exact.features import Fourier
from bgd.exact.sharded import learn_shards

OUTPUTS = 10


def in_turns(variants: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """The median seconds of each."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(turns):
        for name, call in variants.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in times.items()}


def heads(dims: list[int], batches: list[int], turns: int) -> Table:
    table = Table("D", "batch", "update", "in place", "6 members", "solve", title="head, µs an example")
    for dim in dims:
        for batch in batches:
            rng = np.random.default_rng(0)
            x, y = rng.normal(size=(batch, dim)) / dim**0.5, rng.normal(size=(batch, OUTPUTS))
            one, own, six = init(dim, OUTPUTS), init(dim, OUTPUTS), init(dim, OUTPUTS, ridge=np.ones(6))
            precision, sums = np.eye(dim), np.zeros((dim, OUTPUTS))
            times = in_turns(
                {
                    "update": lambda: absorb(one, innovation(one, x, y)),  # noqa: B023
                    "in place": lambda: absorb_(own, innovation(own, x, y)),  # noqa: B023
                    "6 members": lambda: absorb_(six, innovation(six, x, y)),  # noqa: B023
                    "solve": lambda: np.linalg.solve(precision + x.T @ x, sums + x.T @ y),  # noqa: B023
                },
                turns,
            )
            times["6 members"] /= 6
            table.add_row(str(dim), str(batch), *(f"{1e6 * t / batch:.0f}" for t in times.values()))
    return table


def sums(dims: list[int]) -> Table:
    table = Table("D", "float32", "float64", "solve, s", title="sums, µs an example in blocks of 1,024")
    for dim in dims:
        x = torch.randn(1024, dim, generator=torch.Generator().manual_seed(0)) / dim**0.5
        y, total, double = torch.zeros(1024, OUTPUTS), statistics.empty(dim, OUTPUTS), x.double()
        times = in_turns(
            {
                "float32": lambda: statistics.add_(total, x, y),  # noqa: B023
                "float64": lambda: statistics.add_(total, double, y),  # noqa: B023
                "solve": lambda: statistics.solve(total),  # noqa: B023
            },
            turns=3,
        )
        each = (f"{1e6 * times[name] / 1024:.0f}" for name in ("float32", "float64"))
        table.add_row(str(dim), *each, f"{times['solve']:.2f}")
    return table


def workers(counts: list[int], dim: int, shards: int, examples: int) -> Table:
    import ray

    def read(shard: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        x = torch.randn(examples, 20, generator=torch.Generator().manual_seed(shard))
        return [(part, part[:, :OUTPUTS]) for part in x.split(1024)]

    features = Fourier((20,), dim).fit(read(0)[0][0])
    table = Table("workers", "seconds", title=f"{shards} shards of {examples:,} examples, D = {dim}, on Ray")
    expected = None
    for count in counts:
        ray.init(num_cpus=count, include_dashboard=False, log_to_driver=False)
        learn_shards(read, count, features, OUTPUTS, ray=True)  # starts the workers
        start = time.perf_counter()
        total = learn_shards(read, shards, features, OUTPUTS, ray=True)
        table.add_row(str(count), f"{time.perf_counter() - start:.1f}")
        ray.shutdown()
        assert expected is None or torch.equal(expected, total.gram), "the sums depend on the number of workers"
        expected = total.gram
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dims", type=int, nargs="+", default=[50, 100, 200, 300])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--large", type=int, nargs="*", default=[1000, 2000, 4000])
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="*", default=[])
    given = parser.parse_args()
    torch.set_num_threads(1)
    console = Console()
    console.print(heads(given.dims, given.batches, given.turns))
    if given.large:
        console.print(sums(given.large))
    if given.workers:
        console.print(workers(given.workers, dim=1000, shards=8, examples=20_000))


if __name__ == "__main__":
    main()
