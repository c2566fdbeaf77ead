"""What a step of each method costs, in SGD steps; and what it costs to consolidate a task.

MLP 1024-400-400-10, batch 128. Medians of alternating runs in one process, so that a busy machine slows all equally.

    python benchmarks/methods.py [--threads 2] [--rounds 15]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from bgd.methods import Learner, Penalised, create, find_method
from bgd.methods.common.outputs import Outputs
from bgd.methods.curvature.gradient_powers import sum_through_vmap
from bgd.methods.curvature.importance import fisher, sensitivity
from bgd.nets.mlp import MLP
from bgd.scenarios.heads import Heads
from bgd.scenarios.types import Batch, Knowledge, Scenario

HEADS = Heads(10, (tuple(range(10)),) * 2)
SCENARIO = Scenario("domain", Knowledge.TASK_ID, task_in_testing=False, shared_head=True)
SIZE, BATCHES = 128, 94  # 94 x 128 = 12,032 images: a task of Split MNIST

ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("SGD", "sgd", {}),
    ("Adam", "adam", {}),
    ("Adagrad", "adagrad", {}),
    ("Offline", "offline", {}),
    ("L2", "l2", {}),
    ("EWC", "ewc", {}),
    ("Online EWC", "online-ewc", {}),
    ("SI", "si", {}),
    ("MAS", "mas", {}),
    ("LwF", "lwf", {}),
    ("Online EWC every iteration, SGD", "online-ewc", {"consolidate_every": 1, "optimizer": "sgd"}),
    ("Online EWC every 10, SGD", "online-ewc", {"consolidate_every": 10, "optimizer": "sgd"}),
    ("MAS every iteration, SGD", "mas", {"consolidate_every": 1, "optimizer": "sgd"}),
    ("VCL, weights", "vcl", {"train_size": 12000}),
    ("VCL, local", "vcl", {"train_size": 12000, "sampling": "local"}),
    ("BBB, weights", "bbb", {"train_size": 12000}),
    ("BBB, local", "bbb", {"train_size": 12000, "sampling": "local"}),
    ("Noisy Adam", "noisy-adam", {"train_size": 12000}),
    ("Noisy Adam, Fisher of samples", "noisy-adam", {"train_size": 12000, "fisher": "sample"}),
    ("K-FAC, between updates of the factors", "kfac", {"stats_every": 10**6, "inverse_every": 10**6}),
    # a round is five steps: each holds one update and one inversion
    ("K-FAC, factors and inverses every 5", "kfac", {"stats_every": 5, "inverse_every": 5}),
    ("Noisy K-FAC, the same", "noisy-kfac", {"train_size": 12000, "stats_every": 5, "inverse_every": 5}),
    ("BGD, K = 10, loop", "bgd", {"batched": False}),
    ("BGD, K = 10, batched", "bgd", {}),
    ("BGD, K = 2, batched", "bgd", {"mc_samples": 2}),
]


def data() -> list[Batch]:
    g = torch.Generator().manual_seed(0)
    return [
        Batch(
            torch.randn(SIZE, 1024, generator=g) * (torch.rand(SIZE, 1024, generator=g) < 0.2),
            torch.randint(10, (SIZE,), generator=g),
        )
        for _ in range(BATCHES)
    ]


def learner(name: str, settings: dict[str, Any], batches: list[Batch]) -> Learner:
    """In its second task, where penalties and teachers are active. A tiny penalty keeps random labels stable."""
    if issubclass(find_method(name), Penalised):
        settings = {"coefficient": 1e-6, **settings}
    made = create(name, MLP(1024, 10, (400, 400), seed=0), HEADS, SCENARIO, **settings)
    for b in batches[:3]:
        made.observe(*b)
    made.end_task(batches[:3])
    return made


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def steps(batches: list[Batch], rounds: int) -> None:
    learners = {title: learner(name, settings, batches) for title, name, settings in ROWS}
    times: dict[str, list[float]] = {title: [] for title in learners}

    def run(made: Learner) -> Callable[[], None]:
        return lambda: [made.observe(*b) for b in batches[:5]] and None

    for round_ in range(rounds + 1):
        for title, made in learners.items():
            spent = seconds(run(made))
            if round_:  # the first is for warming up
                times[title].append(spent)
    sgd = statistics.median(times["SGD"])
    print(f"\n| a step of | in SGD steps ({sgd / 5 * 1e3:.2f} ms) |\n|---|---|")
    for title, spent in times.items():
        print(f"| {title} | {statistics.median(spent) / sgd:.2f} |")


def consolidation(batches: list[Batch], rounds: int) -> None:
    net, outputs = MLP(1024, 10, (400, 400), seed=0), Outputs(HEADS)
    sgd = learner("sgd", {}, batches)
    small = batches[:3]
    gradients = outputs.likelihood.score_gradients

    def general() -> None:
        for b in small:
            sum_through_vmap(net, b.x, lambda s, y=b.y: gradients(s, y, "predicted"), 2)

    work: dict[str, tuple[Callable[[], object], int]] = {
        "one epoch of SGD": (lambda: [sgd.observe(*b) for b in batches] and None, BATCHES),
        "Fisher, predicted label": (lambda: fisher(net, outputs, batches, "predicted"), BATCHES),
        "Fisher, sampled label": (
            lambda: fisher(net, outputs, batches, "sampled", generator=torch.Generator().manual_seed(0)),
            BATCHES,
        ),
        "Fisher, exact expectation": (lambda: fisher(net, outputs, batches[:10], "exact"), 10),
        "Fisher of mini-batches": (lambda: fisher(net, outputs, batches, "predicted", "batch"), BATCHES),
        "MAS": (lambda: sensitivity(net, outputs, batches), BATCHES),
        "Fisher through vmap (any net)": (general, len(small)),
    }
    times: dict[str, list[float]] = {title: [] for title in work}
    for round_ in range(rounds + 1):
        for title, (run, count) in work.items():
            spent = seconds(run) * BATCHES / count
            if round_:
                times[title].append(spent)
    epoch = statistics.median(times["one epoch of SGD"])
    print(f"\n| consolidating {SIZE * BATCHES:,} images | in epochs of SGD over them |\n|---|---|")
    for title, spent in times.items():
        print(f"| {title} | {statistics.median(spent) / epoch:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"torch {torch.__version__}, {arguments.threads} threads, MLP 1024-400-400-10, batch {SIZE}")
    batches = data()
    steps(batches, arguments.rounds)
    consolidation(batches, max(2, arguments.rounds // 4))


if __name__ == "__main__":
    main()
