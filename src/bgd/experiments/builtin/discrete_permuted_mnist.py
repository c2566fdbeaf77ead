"""Discrete permuted MNIST: sharp switches without boundaries for BGD (two of the paper's figures)."""

from __future__ import annotations

from typing import Any

from bgd.experiments.builtin.presets import (
    ONE_PASS,
    ONE_PASS_LABEL,
    ONE_PASS_NOTE,
    PAPER_SETTINGS,
    STAND_IN,
    paper,
    smoke,
)
from bgd.experiments.declaration import Experiment, Preset, Row, RowInColumn
from bgd.runs.config import DataConfig, NetConfig, Setup, StreamConfig, TasksConfig, TestConfig

SHORT, LONG = "figure of 20 epochs", "figure of 300 epochs"  # the paper's, whatever the scale
WIDE = "20 epochs, width 2000"  # the network of Zenke et al., whose configuration the first figure has
BATCH = {SHORT: 256, LONG: 128}
IN_WIDE = {WIDE: RowInColumn(settings={"std_init": 0.015})}
WITH_BOUNDARIES = Setup(scenario="domain")  # SI and VCL need to know when a task ends
CAPPED = "BGD, std capped"
SI: dict[str, Any] = {"lr": 0.001, "optimizer": "adam", "damping": 0.1}

EXPERIMENT = Experiment(
    name="discrete-permuted-mnist",
    title="Discrete permuted MNIST: BGD without task boundaries, SI and VCL with them",
    shows="Average accuracy over the tasks seen so far. In the paper BGD, which gets no information about tasks, is on "
    "par with SI and VCL, and as training proceeds, ever more weights become certain (their std falls).",
    source="Figures 'The average test accuracy on permuted MNIST vs. the number of tasks' (20 and 300 epochs), 'The "
    "histogram of STD values at the end of the training process of each task', and the search of SI",
    setup=Setup(
        data=DataConfig(name="mnist", normalise="unit"),
        scenario="discrete task-agnostic",
        tasks=TasksConfig(kind="permute", count=10, seed=2019),
        net=NetConfig(widths=(200, 200), init="xavier"),
        test=TestConfig(inference="mc"),
    ),
    columns={
        SHORT: Setup(stream=StreamConfig(epochs=20, batch_size=BATCH[SHORT])),
        LONG: Setup(stream=StreamConfig(epochs=300, batch_size=BATCH[LONG])),
        WIDE: Setup(stream=StreamConfig(epochs=20, batch_size=BATCH[SHORT]), net=NetConfig(widths=(2000, 2000))),
    },
    rows={
        "BGD": Row(method="bgd", settings=PAPER_SETTINGS | {"std_init": 0.06}, columns=IN_WIDE),
        CAPPED: Row(method="bgd", settings=PAPER_SETTINGS | {"std_init": 0.06, "std_max": "init"}, columns=IN_WIDE),
        ONE_PASS_LABEL: Row(method="bgd", settings=ONE_PASS | {"std_init": 0.06}, columns=IN_WIDE),
        "VCL": Row(method="vcl", settings={"lr": 0.001}, setup=WITH_BOUNDARIES),
        "VCL, local": Row(method="vcl", settings={"lr": 0.001, "sampling": "local"}, setup=WITH_BOUNDARIES),
        "SI": Row(method="si", settings=SI | {"coefficient": 0.05}, setup=WITH_BOUNDARIES),
        "SGD": Row(method="sgd", settings={"lr": 0.01}, only=(SHORT, WIDE)),
        **{
            f"SI, c = {c:g}": Row(method="si", settings=SI | {"coefficient": c}, setup=WITH_BOUNDARIES, only=(SHORT,))
            for c in (0.3, 0.1, 0.01, 0.001)
        },
    },
    seeds=(2019, 2020, 2021),
    figures=("accuracy-by-task", "stds", "matrix"),
    presets={
        "smoke": smoke(expected_time="5 s", tasks=TasksConfig(count=3)),
        "quick": Preset(
            expected_time="2 min",
            about="minutes: one seed, one and three epochs a task instead of 20 and 300, 6,000 training images",
            seeds=(2019,),
            setup=Setup(data=DataConfig(train=6_000, test=2_000), tasks=TasksConfig(count=5)),
            columns={
                SHORT: Setup(stream=StreamConfig(epochs=1)),
                LONG: Setup(stream=StreamConfig(epochs=3)),
                WIDE: Setup(stream=StreamConfig(epochs=1), net=NetConfig(widths=(400, 400))),
            },
        ),
        "short": paper(
            "one seed; instead of 300 epochs, 20 on the first five tasks; at width 2000 one epoch on five tasks",
            expected_time="5 h",
            bgd=("BGD", CAPPED),
        ).model_copy(
            update={
                "seeds": (2019,),
                "columns": {
                    LONG: Setup(tasks=TasksConfig(count=5), stream=StreamConfig(epochs=20)),
                    WIDE: Setup(tasks=TasksConfig(count=5), stream=StreamConfig(epochs=1)),
                },
            }
        ),
        "paper": paper(
            "the paper's own scale; 300 epochs take days on a CPU", expected_time="12 days", bgd=("BGD", CAPPED)
        ),
    },
    notes=(
        "The paper shows these results as figures, without numbers, and names no seeds: 2019 - 2021 are ours.",
        "BGD with std_init 0.06 can collapse, in its first iterations or at a switch (the run then reports it); the "
        "row with its stds capped at their initial value is ours.",
        ONE_PASS_NOTE,
        "SI: c = 0.05, the best of the paper's search; the other rows of SI are the rest of that search. Adam with "
        "learning rate 0.001 as Zenke et al.; VCL with Adam and 0.001 as Nguyen et al.; SGD with 0.01 is our choice.",
        "VCL samples one network for a batch, or one for each image (the row local; the same objective with less noise "
        "in its gradient); Nguyen et al. sample ten, start from a maximum-likelihood network of the first task, and "
        "make a new optimizer for each. In this experiment the means start as those of all methods, Adam continues, "
        "and the KL runs over the weights that have had a gradient.",
        "Of the figure of 20 epochs the paper says both 'the same architecture' and 'exactly the configuration' of "
        "Zenke et al., whose notebook has 2,000 units a layer. The authors' code has such a network too, with std_init "
        "0.015. Which of the two columns the figure shows is open.",
        "SI's search has the column of 20 epochs; the paper does not name the figure it belongs to.",
        "Permutations are the same for all seeds (their own seed is 2019).",
        STAND_IN,
    ),
)
