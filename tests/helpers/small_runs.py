"""Runs of a second or less, one for each kind of stream and learner that resuming must serve."""

from bgd.runs.config import RunConfig

DATA = {"name": "digits", "train": 300, "test": 100}
NET = {"widths": [24]}
DISCRETE = {"kind": "discrete", "epochs": 2, "batch_size": 50}
CONTINUOUS = {"kind": "continuous", "iterations": 40, "batch_size": 16}
DRIFTING = {"kind": "drifting", "iterations": 40, "batch_size": 16, "moments": 3}
EVERY = {"consolidate_every": 1, "optimizer": "sgd", "lr": 0.01, "coefficient": 0.1}
BGD = {"std_init": 0.05, "mc_samples": 2, "std_max": "init"}


def small(method: str, stream: dict, scenario: str, settings: dict | None = None, seed: int = 5, **setup) -> RunConfig:
    return RunConfig(
        method=method,
        seed=seed,
        settings=settings or {},
        setup={
            "data": DATA,
            "net": NET,
            "stream": stream,
            "scenario": scenario,
            "tasks": {"count": 3},
            "test": {"evaluations": 4, "samples": 2, "curve": 7},
            **setup,
        },
    )


RUNS = {
    "bgd, discrete": small("bgd", DISCRETE, "discrete task-agnostic", BGD),
    "bgd, continuous": small("bgd", CONTINUOUS, "continuous task-agnostic", BGD | {"antithetic": True}),
    "bgd, drifting": small("bgd", DRIFTING, "continuous task-agnostic", BGD),
    "online-ewc, discrete": small("online-ewc", DISCRETE, "domain", {"fisher_label": "sampled"}),
    "online-ewc, continuous": small("online-ewc", CONTINUOUS, "continuous task-agnostic", EVERY),
    "mas, drifting": small("mas", DRIFTING, "continuous task-agnostic", EVERY),
    "si with the labels trick, discrete": small("si", DISCRETE, "class", loss_over="batch"),
    "vcl, discrete": small("vcl", DISCRETE, "task", test={"inference": "mc", "samples": 2, "curve": 7}),
    "offline": small("offline", DISCRETE, "class"),
}
