"""Permuted MNIST with the exact head: what fixed features cannot do."""

from __future__ import annotations

from bgd.experiments.builtin.presets import TINY, smoke
from bgd.experiments.declaration import Experiment, Preset, Row
from bgd.runs.config import DataConfig, NetConfig, Setup, StreamConfig, TasksConfig

TASKS, CONTINUOUS = "10 tasks", "10 tasks, continuous"

EXPERIMENT = Experiment(
    name="exact-head-permuted",
    title="Permuted MNIST in one pass: the exact head beside BGD",
    shows="One shared head for ten orders of the pixels, each image seen once, no boundaries. The exact head forgets "
    "nothing, but all tasks share D fixed features, made from the first one: it lacks capacity, not memory. BGD learns "
    "its features.",
    setup=Setup(
        data=DataConfig(name="mnist"),
        tasks=TasksConfig(kind="permute", count=10, seed=2019),
        stream=StreamConfig(batch_size=128),
        net=NetConfig(widths=(200, 200)),
    ),
    columns={
        TASKS: Setup(scenario="discrete task-agnostic", stream=StreamConfig(kind="discrete", epochs=1)),
        CONTINUOUS: Setup(
            scenario="continuous task-agnostic", stream=StreamConfig(kind="continuous", iterations=4690, beta=4.0)
        ),
    },
    rows={
        "Exact head": Row(method="exact-head", settings={"features": "fourier", "units": 2000}),
        "BGD": Row(method="bgd"),
        "Adam": Row(method="adam", settings={"lr": 0.001}),
        "SGD": Row(method="sgd", settings={"lr": 0.03}),
    },
    seeds=(0, 1, 2),
    figures=("accuracy-by-task", "each-task"),
    times_of="BGD",
    presets={
        "smoke": smoke(expected_time="5 s", stream=StreamConfig(batch_size=64)).model_copy(
            update={
                "columns": {
                    TASKS: Setup(tasks=TasksConfig(count=3)),
                    CONTINUOUS: Setup(data=TINY, tasks=TasksConfig(count=3), stream=StreamConfig(iterations=60)),
                },
                "settings": {"Exact head": {"units": 200}},
                "seeds": (0,),
            }
        ),
        "quick": Preset(
            expected_time="6 min",
            about="minutes: one seed, 12,000 training images and 94 iterations a task, 1,000 features",
            seeds=(0,),
            settings={"Exact head": {"units": 1000}},
            setup=Setup(data=DataConfig(train=12_000)),
            columns={CONTINUOUS: Setup(stream=StreamConfig(iterations=940))},
        ),
        "paper": Preset(expected_time="1 h", about="all images, 469 iterations a task, three seeds"),
    },
    notes=(
        "No setting of any row is tuned on this stream; SGD and Adam are there for scale.",
        "In the preset smoke the embedded digits replace MNIST: its numbers mean nothing.",
    ),
)
