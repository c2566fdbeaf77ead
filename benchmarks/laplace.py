"""What the Laplace approximations cost, in units of SGD on the vision mix's LeNet with batches of 64.

Two costs: the consolidation at the end of a task (its curvature over the task's batches, in SGD epochs over the same
batches), and the penalty in every step once some tasks have ended (a whole step, in SGD steps). All are timed
alternately with an SGD step in one process; medians. Random images replace real ones, in the same shape.

    python benchmarks/laplace.py [--repeats 9] [--threads 1]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from typing import get_args

import torch
from rich.console import Console
from rich.table import Table

from bgd.methods import create
from bgd.methods.common.likelihoods import Label
from bgd.methods.curvature.task_curvature import Samples, Shape, measure_curvature
from bgd.nets import LeNet
from bgd.scenarios.heads import separate_heads
from bgd.scenarios.types import Batch, Knowledge, Scenario

HEADS = separate_heads([10] * 5)
TASK = Scenario("task", Knowledge.TASK_ID, task_in_testing=True, shared_head=False)
BATCH = 64


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def batch(task: int) -> Batch:
    generator = torch.Generator().manual_seed(task)
    x = torch.randn(BATCH, 3, 32, 32, generator=generator)
    return Batch(x, torch.randint(10 * task, 10 * task + 10, (BATCH,), generator=generator), task)


def learner(name: str, tasks: int = 0, **settings: object):
    """A learner that has seen the end of some tasks."""
    made = create(name, LeNet((3, 32, 32), 50), HEADS, TASK, **settings)
    for t in range(tasks):
        made.observe(*batch(t))
        made.end_task([batch(t)])
    return made


def consolidation(given: Batch, shape: Shape, label: Label) -> Callable[[], object]:
    net, outputs, generator = LeNet((3, 32, 32), 50), learner("sgd").outputs, torch.Generator().manual_seed(0)
    samples = Samples(given.x, given.y, outputs.consolidation_mask(given.task))
    return lambda: measure_curvature(net, outputs.likelihood, [samples], shape, label, generator)


def step(given: Batch, shape: Shape, tasks: int) -> Callable[[], object]:
    made = learner("laplace", tasks, train_size=50_000, curvature=shape, optimizer="sgd")
    return lambda: made.observe(*given)


def actions(given: Batch) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {}
    for shape, label in itertools.product(get_args(Shape), ("sampled", "exact")):
        found[f"consolidation: {shape}, {label} labels"] = consolidation(given, shape, label)
    for shape, tasks in itertools.product(get_args(Shape), (1, 4)):
        found[f"step: {shape}, old tasks: {tasks}"] = step(given, shape, tasks)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    sgd, given, table = learner("sgd"), batch(4), Table("what", "SGD = 1")
    for name, action in actions(given).items():
        for _ in range(2):
            sgd.observe(*given)
            action()
        ratios = []
        for _ in range(options.repeats):
            unit = seconds(lambda: sgd.observe(*given))
            ratios.append(seconds(action) / unit)
        table.add_row(name, f"{statistics.median(ratios):.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
