"""The overhead of a run's loop around the learner, in units of an SGD step on MLP 1024-200-200-10 with batches of 128.

In one process, alternating: a stretch of a real run (progress, clock, losses, checkpoints as due), and the next stretch
as a bare loop of ``learner.observe(*stream.batch(i))``; no stretch is timed twice, since its images would be cached.
The ratio is the median of the ratios of neighbours, with their quartiles. Random bytes replace MNIST.

The overhead is below the noise of a step, so it is also timed by itself, around a learner and a stream that do nothing,
their calls included: an upper bound, as a fraction of a step.

With ``--processes``: ten small runs in this process and in two, as a ratio of wall-clock time.

    python benchmarks/runs.py [--repeats 15] [--processes]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from bgd.runs import data as run_data
from bgd.runs.config import RunConfig
from bgd.runs.executors import Executor, Job, Processes, in_this_process
from bgd.runs.folder import RunFolder
from bgd.runs.options import Options
from bgd.runs.runner import Runner
from bgd.runs.stop import StopRequest
from bgd.scenarios import DataSet, Part

Timed = Callable[[], float]

TARGET, TARGET_PROCESSES = 0.05, 0.6
STRETCH = 100


def _silent(*_: object) -> None:
    """Nobody watches."""


def random_bytes(n: int) -> Part:
    generator = torch.Generator().manual_seed(0)
    return Part(torch.randint(0, 256, (n, 1, 28, 28), dtype=torch.uint8, generator=generator), torch.arange(n) % 10)


def nothing(*_: object) -> float:
    """A learner that learns nothing."""
    return 0.0


def overhead(repeats: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Seconds of an iteration inside a run and in a bare loop, each time; and of the loop around nothing."""
    data = DataSet("bytes", random_bytes(60_000), random_bytes(1_000), tuple("0123456789"))
    config = RunConfig(
        method="sgd",
        setup={
            "scenario": "continuous task-agnostic",
            "data": {"name": "bytes", "pad": 2, "normalise": "padded-mnist"},
            "stream": {"kind": "continuous", "iterations": 93_800},
            "tasks": {"count": 10},
        },
    )
    with mock.patch.object(run_data, "_load", return_value=data), tempfile.TemporaryDirectory() as folder:
        files = RunFolder(Path(folder))
        with files.opened(config):
            runner = Runner(config, files, Options(), StopRequest(), _silent)
            runner.start()

            def inside() -> float:
                start = time.perf_counter()
                runner.train_until(runner.iteration + STRETCH)
                runner.checkpoint_or_stop()
                return (time.perf_counter() - start) / STRETCH

            def bare() -> float:
                begin, total = runner.iteration, 0.0
                start = time.perf_counter()
                for i in range(begin, begin + STRETCH):
                    total += runner.learner.observe(*runner.stream.batch(i))
                runner.iteration += STRETCH
                return (time.perf_counter() - start) / STRETCH

            seconds: dict[Timed, list[float]] = {inside: [], bare: []}
            for k in range(repeats + 1):
                for one in (inside, bare) if k % 2 else (bare, inside):
                    seconds[one].append(one())
            batch = runner.stream.batch(0)
            runner.learner.observe = nothing
            runner.stream.batch = lambda _: batch
            empty = statistics.median(inside() for _ in range(repeats))
    return np.array(seconds[inside][1:]), np.array(seconds[bare][1:]), empty


def ten_runs(executor: Executor) -> float:
    """Seconds of ten runs."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = [
            Job(
                RunConfig(
                    method="bgd",
                    seed=seed,
                    settings={"std_max": "init"},
                    setup={"stream": {"epochs": 8}, "tasks": {"count": 2}},
                ),
                Path(folder) / str(seed),
            )
            for seed in range(10)
        ]
        start = time.perf_counter()
        for outcome in executor(jobs, _silent):
            assert outcome.error is None, outcome.error
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--rounds", type=int, default=3, help="of the ten runs")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    table = Table(title="The cost of running")
    for column in ("what", "ours", "base", "ratio", "target"):
        table.add_column(column, justify="left" if column == "what" else "right")
    inside, bare, empty = overhead(arguments.repeats)
    low, middle, high = np.quantile(inside / bare, (0.25, 0.5, 0.75))
    step = float(np.median(bare))
    table.add_row(
        "loop around an SGD step",
        f"{np.median(inside) * 1e3:.3f} ms",
        f"{step * 1e3:.3f} ms",
        f"{middle:.3f} ({low:.3f} to {high:.3f})",
        f"{1 + TARGET}",
    )
    table.add_row(
        "loop around nothing", f"{empty * 1e6:.2f} us", f"{step * 1e3:.3f} ms", f"{empty / step:.5f}", f"{TARGET}"
    )
    if arguments.processes:
        many, one = np.median(
            [[ten_runs(Processes(2)), ten_runs(in_this_process)] for _ in range(arguments.rounds)], axis=0
        )
        table.add_row(
            "ten runs, two processes", f"{many:.1f} s", f"{one:.1f} s", f"{many / one:.2f}", f"{TARGET_PROCESSES}"
        )
    Console().print(table)


if __name__ == "__main__":
    main()
