"""Runs of a second or less, one for each kind of stream and learner that resuming must serve."""

from bgd.runs.config import RunConfig

DATA = {"name": "digits", "train": 300, "test": 100}
NET = {"widths": [24]}
DISCRETE = {"kind": "discrete", "epochs": 2, "batch_size": 50}
CONTINUOUS = {"kind": "continuous", "iterations": 40, "batch_size": 16}
DRIFTING = {"kind": "drifting", "iterations": 40, "batch_size": 16, "moments": 3}
AGNOSTIC = "continuous task-agnostic"
PREQUENTIAL = {"kind": "prequential", "batch_size": 16}
TABLE = {"data": {"name": "river-phishing", "train": 400}, "test": {"evaluations": 6, "curve": 7, "alarm_every": 100}}
EVERY = {"consolidate_every": 1, "optimizer": "sgd", "lr": 0.01, "coefficient": 0.1}
SHARED = {"estimator": "shared", "max_move": None, "boost": None}
BGD = SHARED | {"std_init": 0.05, "mc_samples": 2, "std_max": "init"}


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
    "bgd, one pass": small("bgd", CONTINUOUS, "continuous task-agnostic"),
    "bgd, drifting": small("bgd", DRIFTING, "continuous task-agnostic", BGD),
    "online-ewc, discrete": small("online-ewc", DISCRETE, "domain", {"fisher_label": "sampled"}),
    "online-ewc, continuous": small("online-ewc", CONTINUOUS, "continuous task-agnostic", EVERY),
    "mas, drifting": small("mas", DRIFTING, "continuous task-agnostic", EVERY),
    "si with the labels trick, discrete": small("si", DISCRETE, "class", loss_over="batch"),
    "vcl, discrete": small("vcl", DISCRETE, "task", test={"inference": "mc", "samples": 2, "curve": 7}),
    "bgd, prequential": small("bgd", PREQUENTIAL, AGNOSTIC, **TABLE),
    "river, prequential": small("bgd.methods.river:RiverLearner", PREQUENTIAL, AGNOSTIC, **TABLE),
    "stream classifier": small("bgd.methods.stream_classifier:StreamLearner", PREQUENTIAL, AGNOSTIC, **TABLE),
    "offline": small("offline", DISCRETE, "class"),
}

DIGITS_16 = {"name": "digits", "shape": [3, 16, 16], "train": 40, "test": 20}
DIGITS_32 = DIGITS_16 | {"shape": [3, 32, 32]}


def conv_run(method: str, net: str, settings: dict | None = None, **setup) -> RunConfig:
    defaults = {
        "data": DIGITS_16,
        "net": {"name": net},
        "tasks": {"kind": "split", "count": 2},
        "scenario": "task",
        "stream": {"batch_size": 8, "augment": {"crop": 2, "flip": True}},
        "test": {"samples": 2, "curve": 3},
    }
    return RunConfig(method=method, seed=5, settings=settings or {}, setup=defaults | setup)


CONV_BGD = {"std_init": 0.02, "mc_samples": 2}
CONV_RUNS = {
    "bgd, zenke": conv_run("bgd", "zenke", CONV_BGD),
    "bgd in a loop, zenke": conv_run("bgd", "zenke", CONV_BGD | {"batched": False}),
    "sgd, zenke": conv_run("sgd", "zenke"),
    "si, zenke": conv_run("si", "zenke"),
    "sgd, vgg16-bn": conv_run("sgd", "vgg16-bn", data=DIGITS_32 | {"train": 16}, stream={"batch_size": 4}),
}
