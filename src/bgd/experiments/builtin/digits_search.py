"""The search behind the demo: every setting that its baselines were tuned over."""

from __future__ import annotations

from typing import Any

from bgd.experiments.builtin import digits
from bgd.experiments.builtin.digits import CLASSES, COLUMNS, FADING, SETUP, STREAM, TRICK, WITH_TRICK, in_column
from bgd.experiments.declaration import Experiment, Preset, Row, RowInColumn

RATES = {
    "sgd": (0.01, 0.03, 0.1, 0.3),
    "adam": (0.0003, 0.001, 0.003, 0.01),
}
SMALL_RATES = {"sgd": (0.001, 0.003, 0.01, 0.03), "adam": (0.00003, 0.0001, 0.0003, 0.001)}
"""Of new classes: what hardly learns the new hardly forgets the old."""
STDS = (0.05, 0.1, 0.2, 0.3)
COEFFICIENTS = (0.1, 1, 10, 100)
EWC = [{"lr": lr, "coefficient": c} for lr in (0.03, 0.1) for c in COEFFICIENTS]
BOUNDARY_RATES, BOUNDARY_COEFFICIENTS = (0.0001, 0.001), (100, 1000, 10_000, 100_000)
EWC_AT_BOUNDARIES = [{"lr": lr, "coefficient": c} for lr in BOUNDARY_RATES for c in BOUNDARY_COEFFICIENTS]


def _row(method: str, number: int, only: tuple[str, ...] = tuple(COLUMNS)) -> Row:
    columns = {
        column: RowInColumn(settings=in_column(method, column) | candidates(method, column)[number]) for column in only
    }
    return Row(method=method, columns=columns, only=only)


def candidates(method: str, column: str) -> list[dict[str, Any]]:
    """The settings that a baseline was tried with in a column.

    >>> candidates("adam", CLASSES)[0], len(candidates("online-ewc", CLASSES))
    ({'lr': 3e-05}, 8)
    """
    if method == "online-ewc":
        return EWC_AT_BOUNDARIES if column == CLASSES else EWC
    if method == "bgd":
        return [{"std_init": std} for std in STDS]
    return [{"lr": lr} for lr in (SMALL_RATES if column == CLASSES else RATES)[method]]


def _with_trick(lr: float) -> Row:
    return Row(method="sgd", settings={"lr": lr}, setup=WITH_TRICK, only=(CLASSES,))


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:,}" for value in values)


EXPERIMENT = Experiment(
    name="digits-search",
    title="The demo's baselines: every setting that was tried",
    shows="The best of each method in each column is what `bgd run digits` shows, on other seeds.",
    setup=SETUP,
    columns=COLUMNS,
    rows={
        **{f"BGD, {number + 1}": _row("bgd", number, (FADING, STREAM)) for number in range(4)},
        **{f"SGD, {number + 1}": _row("sgd", number) for number in range(4)},
        **{f"SGD{TRICK}, {number + 1}": _with_trick(lr) for number, lr in enumerate(RATES["sgd"])},
        **{f"Adam, {number + 1}": _row("adam", number) for number in range(4)},
        **{f"Online EWC, {number + 1}": _row("online-ewc", number) for number in range(8)},
    },
    seeds=(101, 102),
    figures=("accuracy-by-task", "learning-curves"),
    presets={
        "smoke": digits.EXPERIMENT.presets["smoke"].model_copy(update={"settings": {}}),
        "quick": Preset(expected_time="2 min", about="one seed", seeds=(101,)),
        "paper": Preset(expected_time="4 min", about="two seeds, which the demo does not use"),
    },
    notes=(
        f"BGD: std_init {_listed(STDS)}. Learning rates of SGD {_listed(RATES['sgd'])}, of Adam "
        f"{_listed(RATES['adam'])}; for new classes without the trick {_listed(SMALL_RATES['sgd'])} and "
        f"{_listed(SMALL_RATES['adam'])}. Online EWC: SGD at 0.03 and 0.1, with coefficients {_listed(COEFFICIENTS)}, "
        f"consolidated every iteration; for new classes Adam at {_listed(BOUNDARY_RATES)}, with "
        f"{_listed(BOUNDARY_COEFFICIENTS)}, at boundaries.",
    ),
)
