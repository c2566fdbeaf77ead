"""How often does BGD collapse in its first iterations? Estimators, noise and initialisations on fifty seeds."""

from __future__ import annotations

from typing import Any

from bgd.experiments.builtin.presets import FAST, ONE_PASS, PADDED, PAPER_SETTINGS, STAND_IN, smoke
from bgd.experiments.declaration import Experiment, Preset, Row, RowInColumn
from bgd.runs.config import DataConfig, NetConfig, SetConfig, Setup, StreamConfig, TasksConfig, TestConfig

PERMUTED, SPLIT, SPLIT_SCRIPT = "permuted, 0.06", "split domain, 0.05", "split domain, 0.02"
STD_INIT = {PERMUTED: 0.06, SPLIT: 0.05, SPLIT_SCRIPT: 0.02}
FIRST_DIGITS = SetConfig(name="mnist", classes=(0, 1))
SPLIT_SETUP = Setup(
    scenario="domain",
    data=DataConfig(mix=(FIRST_DIGITS,)),
    tasks=TasksConfig(kind="mix"),
    stream=StreamConfig(kind="discrete", epochs=2),
    net=NetConfig(widths=(400, 400)),
)
TINY_SPLIT = Setup(data=DataConfig(mix=(SetConfig(name="digits", classes=(0, 1)),)), stream=StreamConfig(epochs=1))
CAPPED, SKIP = {"std_max": "init"}, {"nonfinite": "skip"}
_BY_HAND = {column: RowInColumn(settings={"std_init": std}) for column, std in STD_INIT.items()}


def _row(settings: dict[str, Any], init: str = "xavier") -> Row:
    return Row(
        method="bgd",
        settings=PAPER_SETTINGS | settings,
        setup=Setup(net=NetConfig.model_validate({"init": init})),
        columns=_BY_HAND,
    )


ROWS = {
    "ten networks": _row({}),
    "ten networks, antithetic": _row({"antithetic": True}),
    "ten networks, capped": _row(CAPPED),
    "ten networks, torch's noise": _row({"noise": "torch"}),
    "ten networks, zero biases": _row({}, "xavier-zero-bias"),
    "ten networks, torch's initialisation": _row({}, "torch"),
    "two networks": _row({"mc_samples": 2}),
    "two networks, antithetic": _row({"mc_samples": 2, "antithetic": True}),
    "two networks, capped": _row({"mc_samples": 2} | CAPPED),
    "one pass": _row(ONE_PASS),
    "one pass, torch's noise": _row(ONE_PASS | {"noise": "torch"}),
    "one pass, torch's initialisation": _row(ONE_PASS, "torch"),
    "one pass, capped": _row(ONE_PASS | CAPPED),
    "the library's default, std by hand": Row(method="bgd", settings=SKIP, columns=_BY_HAND),
    "the library's default": Row(method="bgd", settings=SKIP),
}
_COMPILED = {
    label: dict(FAST) if "noise" not in row.settings else {"compile": None}
    for label, row in ROWS.items()
    if row.settings.get("estimator") == "shared"
}

EXPERIMENT = Experiment(
    name="collapse",
    title="How often does BGD collapse?",
    shows="At the paper's larger std_init the noise of E[g eps] can make stds explode in the first iterations: every "
    "unit dies, and the accuracy stays at chance. Each run has 250 iterations on one task, 198 in split learning; it "
    "counts as collapsed where it warns of it.",
    setup=Setup(
        data=PADDED,
        scenario="continuous task-agnostic",
        tasks=TasksConfig(kind="permute", count=1, seed=2019),
        stream=StreamConfig(kind="continuous", batch_size=128, iterations=250),
        net=NetConfig(widths=(200, 200)),
        test=TestConfig(inference="mc", stds=1),
    ),
    columns={PERMUTED: Setup(), SPLIT: SPLIT_SETUP, SPLIT_SCRIPT: SPLIT_SETUP},
    rows=ROWS,
    seeds=tuple(range(2019, 2069)),
    counts_collapses=True,
    highlight="one pass, capped",
    presets={
        "smoke": smoke(expected_time="20 s", stream=StreamConfig(batch_size=64, iterations=10)).model_copy(
            update={"columns": dict.fromkeys((SPLIT, SPLIT_SCRIPT), TINY_SPLIT)}
        ),
        "quick": Preset(
            expected_time="8 min",
            about="minutes: one seed, tested on 2,000 images",
            seeds=(2019,),
            setup=Setup(data=DataConfig(test=2_000)),
        ),
        "paper": Preset(
            expected_time="7 h",
            about="fifty seeds, 2,000 images to test on",
            setup=Setup(data=DataConfig(test=2_000)),
            settings=_COMPILED,
        ),
    },
    notes=(
        "The first 250 iterations of the paper's continuous stream hold its first task alone; so do the first 396 of "
        "Split MNIST. Neither later tasks nor switches play a part in what is counted here.",
        "capped: no std may grow beyond its initial value. All other settings are the paper's: no limit to a move, no "
        "boost. The library's default has all three, and std_init = 1 / sqrt(2 fan_in) unless it is set by hand.",
        "one pass: every example has noise of its own, one forward and backward pass.",
        STAND_IN,
    ),
)
