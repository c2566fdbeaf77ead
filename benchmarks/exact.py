"""What the exact head costs: with the number of features D, of members, of examples in a batch, and of workers.

Times are of the processor, medians over turns that take every variant once, so that a busy machine hardly matters; run
it with ``OMP_NUM_THREADS=1 python benchmarks/exact.py``. ``--workers 1 2`` adds shards on Ray, by the clock and the
least of its turns; what the driver does, to add the shards' sums, is the part that more workers do not speed up.
``--json FILE`` keeps the raw figures, in seconds; ``exact.json`` beside this file has ours.

Columns of the first table, in microseconds an example:
    update    ``absorb(innovation)``: the inverse is kept up to date, O(D^2).
    in place  the same into the head's own memory.
    6 members the same with six members, for each member.
    solve     what inverting L afresh after the batch would cost instead, O(D^3 / B).
Columns of the second table, in microseconds an example:
    bfloat16, float32, float64
              ``statistics.add_`` with blocks of 1,024, by the precision of the products.
    solve     one Cholesky solution, in seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

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
            start = time.process_time()
            call()
            times[name].append(time.process_time() - start)
    return {name: median(values) for name, values in times.items()}


def heads(dims: list[int], batches: list[int], turns: int, raw: list[dict[str, Any]]) -> Table:
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
            raw.append({"table": "head", "D": dim, "batch": batch, "turns": turns, **times})
            times["6 members"] /= 6
            table.add_row(str(dim), str(batch), *(f"{1e6 * t / batch:.0f}" for t in times.values()))
    return table


def sums(dims: list[int], raw: list[dict[str, Any]]) -> Table:
    names = ("bfloat16", "float32", "float64")
    table = Table("D", *names, "solve, s", title="sums, µs an example in blocks of 1,024")
    for dim in dims:
        x = torch.randn(1024, dim, generator=torch.Generator().manual_seed(0)) / dim**0.5
        y, total = torch.zeros(1024, OUTPUTS), statistics.empty(dim, OUTPUTS)
        features = {name: x.to(getattr(torch, name)) for name in names}
        calls = {name: partial(statistics.add_, total, phi, y) for name, phi in features.items()}
        times = in_turns({**calls, "solve": lambda: statistics.solve(total)}, turns=3)  # noqa: B023
        raw.append({"table": "sums", "D": dim, "block": 1024, "turns": 3, **times})
        table.add_row(str(dim), *(f"{1e6 * times[name] / 1024:.0f}" for name in names), f"{times['solve']:.2f}")
    return table


def workers(counts: list[int], dim: int, shards: int, examples: int, raw: list[dict[str, Any]]) -> Table:
    import ray

    def read(shard: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        x = torch.randn(examples, 20, generator=torch.Generator().manual_seed(shard))
        return [(part, part[:, :OUTPUTS]) for part in x.split(1024)]

    features = Fourier((20,), dim).fit(read(0)[0][0])
    made = {"table": "workers", "D": dim, "shards": shards, "examples": examples}
    start = time.process_time()
    expected = learn_shards(read, shards, features, OUTPUTS)
    alone = time.process_time() - start
    raw.append({**made, "workers": 0, "processor seconds": alone})
    table = Table("workers", "seconds", "processor time of the driver, s")
    table.title = (
        f"{shards} shards of {examples:,} examples, D = {dim}, on Ray; {alone:.1f} s of processor time without it"
    )
    for count in counts:
        ray.init(num_cpus=count, include_dashboard=False, log_to_driver=False)
        learn_shards(read, count, features, OUTPUTS, ray=True)  # starts the workers
        seconds, driver = [], []
        for _ in range(3):
            start, processor = time.perf_counter(), time.process_time()
            total = learn_shards(read, shards, features, OUTPUTS, ray=True)
            seconds.append(time.perf_counter() - start)
            driver.append(time.process_time() - processor)
        raw.append({**made, "workers": count, "seconds": seconds, "driver's processor seconds": driver})
        table.add_row(str(count), f"{min(seconds):.1f}", f"{min(driver):.2f}")
        ray.shutdown()
        assert torch.equal(expected.gram, total.gram), "the sums depend on the number of workers"
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dims", type=int, nargs="*", default=[50, 100, 200, 300])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--large", type=int, nargs="*", default=[1000, 2000, 4000])
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="*", default=[])
    parser.add_argument("--examples", type=int, default=20_000, help="in each of 8 shards on Ray")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    console, raw = Console(), list[dict[str, Any]]()
    if given.dims:
        console.print(heads(given.dims, given.batches, given.turns, raw))
    if given.large:
        console.print(sums(given.large, raw))
    if given.workers:
        console.print(workers(given.workers, 1000, 8, given.examples, raw))
    if given.json:
        given.json.write_text(json.dumps(raw, indent=1) + "\n")


if __name__ == "__main__":
    main()
