"""Results of runs that were never computed: small, and with known means."""

from __future__ import annotations

import math

from bgd.runs.config import RunConfig
from bgd.runs.result import CurvePoint, Evaluation, Machine, RunResult, StdHistogram

TASKS = 5


def make_config(row: str, seed: int = 2019, column: str = "accuracy", **changes) -> RunConfig:
    fields = {
        "experiment": "made",
        "preset": "paper",
        "row": row,
        "column": column,
        "seed": seed,
        "method": {"BGD": "bgd", "Offline": "offline", "Adam": "adam"}.get(row, "sgd"),
        "settings": {"std_init": 0.06, "mc_samples": 10} if "BGD" in row else {"lr": 0.01},
        "setup": {
            "tasks": {"count": TASKS},
            "scenario": "continuous task-agnostic",
            "stream": {"kind": "continuous", "iterations": 1000},
        },
    }
    return RunConfig.model_validate(fields | changes)


def make_result(row: str, end: float, seed: int = 2019, column: str = "accuracy", **changes) -> RunResult:
    """A run whose accuracy at the end is exactly ``end`` (in [0, 1]) on average; Offline is an upper bound."""
    config = make_config(row, seed, column, **changes)
    R = [
        [min(1.0, max(0.0, end + 0.1 * (TASKS - 1 - i) / TASKS)) if j <= i else 0.1 for j in range(TASKS)]
        for i in range(TASKS)
    ]
    stages = [200 * (i + 1) for i in range(TASKS)]
    evaluations = [
        Evaluation(
            iteration=stage,
            stage=i,
            seen=i + 1,
            accuracy=R[i],
            loss=[0.5] * TASKS,
            by_inference={"map": R[i]},
        )
        for i, stage in enumerate(stages)
    ]
    edges = [10 ** (-4 + b / 10) for b in range(31)]
    stds = [
        StdHistogram(
            iteration=0 if k == 0 else stages[k - 1],
            after="start" if k == 0 else f"task {k}",
            edges=edges,
            counts=[int(k * 40 * math.exp(-(((b - 18) / 6) ** 2))) if b != 27 else 3000 - 200 * k for b in range(30)],
            smallest=1e-3 if k else 0.06,
            largest=0.06,
        )
        for k in range(TASKS + 1)
    ]
    return RunResult(
        config=config,
        upper_bound=config.method == "offline",
        task_names=[f"task {j + 1}" for j in range(TASKS)],
        iterations=1000,
        stages=stages,
        R=R,
        average_accuracy=end,
        by_inference={"map": end},
        metrics={"forgetting": 0.1 * (1 - end)},
        evaluations=evaluations,
        curve=[CurvePoint(iteration=5 * (i + 1), loss=2.3 * math.exp(-i / 60) + 0.1) for i in range(200)],
        stds=stds if "BGD" in row else [],
        warnings=[],
        machine=Machine(
            seconds=12.5 if "BGD" in row else 4.0,
            versions={"bgd": "0.1", "torch": "2.13.0"},
            platform="Linux, 2 cores",
            commit="0123456789abcdef0123456789abcdef01234567",
            command="bgd run made --preset paper",
            finished="2026-01-02T03:04:05+00:00",
        ),
    )
