"""What preparing a batch costs, in units of an SGD step on MLP 1024-200-200-10 with batches of 128.

Every kind of stream is read alternately with an SGD step on the batch it gave, so that caches are as cold as in a
real run; medians over windows of 64 of both, in one process. Random bytes replace MNIST, in the same number and
shape.

    python benchmarks/stream.py [--repeats 8] [--threads 2]
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
    Augment,
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
WINDOW = 64


def random_bytes(n: int, generator: torch.Generator) -> Part:
    images = torch.randint(0, 256, (n, 1, 32, 32), dtype=torch.uint8, generator=generator)
    return Part(images, torch.arange(n) % 10)


def streams() -> dict[str, tuple[Callable[[], Stream], int]]:
    """For each kind: a function that makes it, and an iteration in its middle."""
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
        "split, discrete, cropped and mirrored": (
            lambda: Discrete(split(data, **options), discrete, epochs=4, augment=Augment(crop=4, flip=True)),
            200,
        ),
        "permuted, discrete": (lambda: Discrete(permute(data, 10, **options), discrete, epochs=20), 12_000),
        "permuted, continuous, one task": (
            lambda: Continuous(permute(data, 10, **options), continuous, iterations=n),
            n // 20 * 5,
        ),
        "permuted, continuous, two tasks": (
            lambda: Continuous(permute(data, 10, **options), continuous, iterations=n),
            middle,
        ),
        "the same, without a cache": (
            lambda: Continuous(permute(data, 10, **options), continuous, iterations=n, cache_bytes=0),
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
    """Seconds of a batch and of an SGD step: medians of means over windows.

    A stream gathers several batches at once, so that most cost little and one in sixteen much: only the mean over
    a window is honest.
    """
    net = MLP(1024, 10)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    # by then a long run has seen every image of its current tasks
    for i in range(max(begin - 3000, 0), begin):
        stream.batch(i)
    windows = []
    for window in range(repeats):
        batch_time = step_time = 0.0
        for i in range(WINDOW):
            start = time.perf_counter()
            batch = stream.batch(begin + window * WINDOW + i)
            middle = time.perf_counter()
            sgd.zero_grad()
            cross_entropy(net(batch.x), batch.y).backward()
            sgd.step()
            batch_time += middle - start
            step_time += time.perf_counter() - middle
        windows.append((batch_time / WINDOW, step_time / WINDOW))
    batches, steps = zip(*windows, strict=True)
    return statistics.median(batches), statistics.median(steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    table = Table(title=f"Preparing a batch of 128 x 1024 (target: {TARGET} SGD steps)")
    for column in ("stream", "batch, ms", "SGD step, ms", "ratio"):
        table.add_column(column, justify="left" if column == "stream" else "right")
    for name, (make, begin) in streams().items():
        batch, step = measure(make(), begin, arguments.repeats)
        ratio = batch / step
        style = "green" if ratio <= TARGET else "yellow"
        table.add_row(name, f"{batch * 1e3:.3f}", f"{step * 1e3:.3f}", f"[{style}]{ratio:.3f}[/]")
    Console().print(table)


if __name__ == "__main__":
    main()
