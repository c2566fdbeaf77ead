"""What preparing a batch costs, in units of an SGD step on MLP 1024-200-200-10 with batches of 128.

Every kind of stream is read alternately with an SGD step on the batch it gave, so that caches are as cold as in a
real run; medians of both, in one process. Random bytes stand in for MNIST: their number and shape are the same.

    python benchmarks/stream.py [--repeats 300]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch.nn.functional import cross_entropy

from bgd.nets import MLP
from bgd.scenarios import (
    PADDED_MNIST,
    Continuous,
    DataSet,
    Discrete,
    Drifting,
    Part,
    Stream,
    blending,
    permute,
    rotate,
    rotating,
    scenario,
    split,
)

TARGET = 0.1


def random_bytes(n: int, generator: torch.Generator) -> Part:
    images = torch.randint(0, 256, (n, 1, 32, 32), dtype=torch.uint8, generator=generator)
    return Part(images, torch.arange(n) % 10)


def streams() -> dict[str, tuple[Callable[[], Stream], int]]:
    """For each kind: how to make it, and an iteration in its midst."""
    generator = torch.Generator().manual_seed(0)
    train, test = random_bytes(60_000, generator), random_bytes(1_000, generator)
    data = DataSet("bytes", train, test, tuple("0123456789"))
    other = DataSet("other bytes", random_bytes(60_000, generator), test, data.classes)
    discrete, continuous = scenario("discrete task-agnostic"), scenario("continuous task-agnostic")
    options = {"shared_head": True, "normalise": PADDED_MNIST}
    n = 93_800
    middle = n // 10 * 3  # half of the samples from each of two tasks
    return {
        "split, discrete": (lambda: Discrete(split(data, **options), discrete, epochs=4), 200),
        "permuted, discrete": (lambda: Discrete(permute(data, 10, **options), discrete, epochs=20), 12_000),
        "permuted, continuous, one task": (
            lambda: Continuous(permute(data, 10, **options), continuous, iterations=n),
            n // 20 * 5,
        ),
        "permuted, continuous, two tasks": (
            lambda: Continuous(permute(data, 10, **options), continuous, iterations=n),
            middle,
        ),
        "the same, nothing remembered": (
            lambda: Continuous(permute(data, 10, **options), continuous, iterations=n, memory=0),
            middle,
        ),
        "rotated, continuous, two tasks": (
            lambda: Continuous(rotate(data, range(0, 90, 9), **options), continuous, iterations=n),
            middle,
        ),
        "drifting rotation": (
            lambda: Drifting(rotating(data, normalise=PADDED_MNIST), continuous, iterations=n),
            middle,
        ),
        "drifting blend": (
            lambda: Drifting(blending(data, other, normalise=PADDED_MNIST), continuous, iterations=n),
            middle,
        ),
    }


def measure(stream: Stream, begin: int, repeats: int) -> tuple[float, float]:
    """Median seconds of a batch and of an SGD step."""
    net = MLP(1024, 10)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    # what a long run has remembered by then: two tasks' images, each once
    for i in range(begin - 1000, begin):
        stream.batch(max(i, 0))
    batch_times, step_times = [], []
    for i in range(begin, begin + repeats):
        start = time.perf_counter()
        batch = stream.batch(i)
        middle = time.perf_counter()
        sgd.zero_grad()
        cross_entropy(net(batch.x), batch.y).backward()
        sgd.step()
        end = time.perf_counter()
        batch_times.append(middle - start)
        step_times.append(end - middle)
    return statistics.median(batch_times), statistics.median(step_times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=300)
    repeats = parser.parse_args().repeats
    table = Table(title=f"Preparing a batch of 128 x 1024 (target: {TARGET} SGD steps)")
    for column in ("stream", "batch, ms", "SGD step, ms", "ratio"):
        table.add_column(column, justify="left" if column == "stream" else "right")
    for name, (make, begin) in streams().items():
        batch, step = measure(make(), begin, repeats)
        ratio = batch / step
        style = "green" if ratio <= TARGET else "yellow"
        table.add_row(name, f"{batch * 1e3:.3f}", f"{step * 1e3:.3f}", f"[{style}]{ratio:.3f}[/]")
    Console().print(table)


if __name__ == "__main__":
    main()
