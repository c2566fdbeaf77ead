"""The search behind the demo: every setting that its baselines were tuned over."""

from __future__ import annotations

from typing import Any

from bgd.experiments.builtin import digits
from bgd.experiments.builtin.digits import CLASSES, COLUMNS, FADING, SETUP, STREAM, TRICK, WITH_TRICK, in_column
from bgd.experiments.declaration import Experiment, Preset, Row, RowInColumn

SGD_RATES, ADAM_RATES = (0.01, 0.03, 0.1, 0.3), (0.0003, 0.001, 0.003, 0.01)
STDS = (0.05, 0.1, 0.2, 0.3)
COEFFICIENTS = (0.1, 1, 10, 100)
EWC = [{"lr": lr, "coefficient": c} for lr in (0.03, 0.1) for c in COEFFICIENTS]
EWC_AT_BOUNDARIES = [{"lr": lr, "coefficient": c} for lr in (0.001, 0.003) for c in (1, 10, 100, 1000)]


def _row(method: str, number: int, only: tuple[str, ...] = tuple(COLUMNS)) -> Row:
    columns = {
        column: RowInColumn(settings=in_column(method, column) | candidates(method, column)[number]) for column in only
    }
    return Row(method=method, columns=columns, only=only)


def candidates(method: str, column: str) -> list[dict[str, Any]]:
    """The settings that a baseline was tried with in a column.

    >>> candidates("adam", CLASSES)[0], len(candidates("online-ewc", CLASSES))
    ({'lr': 0.0003}, 8)
    """
    if method == "online-ewc":
        return EWC_AT_BOUNDARIES if column == CLASSES else EWC
    if method == "bgd":
        return [{"std_init": std} for std in STDS]
    return [{"lr": lr} for lr in (SGD_RATES if method == "sgd" else ADAM_RATES)]


def _with_trick(number: int) -> Row:
    return Row(method="sgd", settings=candidates("sgd", CLASSES)[number], setup=WITH_TRICK, only=(CLASSES,))


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)


EXPERIMENT = Experiment(
    name="digits-search",
    title="The demo's baselines: every setting that was tried",
    shows="The best of each method in each column is what `bgd run digits` shows, on other seeds.",
    setup=SETUP,
    columns=COLUMNS,
    rows={
        **{f"BGD, {number + 1}": _row("bgd", number, (FADING, STREAM)) for number in range(4)},
        **{f"SGD, {number + 1}": _row("sgd", number) for number in range(4)},
        **{f"SGD{TRICK}, {number + 1}": _with_trick(number) for number in range(4)},
        **{f"Adam, {number + 1}": _row("adam", number) for number in range(4)},
        **{f"Online EWC, {number + 1}": _row("online-ewc", number) for number in range(8)},
    },
    seeds=(101, 102),
    presets={
        "smoke": digits.EXPERIMENT.presets["smoke"].model_copy(update={"settings": {}}),
        "quick": Preset(expected_time="2 min", about="one seed", seeds=(101,)),
        "paper": Preset(expected_time="4 min", about="two seeds, which the demo does not use"),
    },
    notes=(
        f"BGD: std_init {_listed(STDS)}. SGD: learning rates {_listed(SGD_RATES)}. Adam: {_listed(ADAM_RATES)}. "
        f"Online EWC: SGD at 0.03 and 0.1, with coefficients {_listed(COEFFICIENTS)}, consolidated every iteration; "
        "for new classes Adam at 0.001 and 0.003, with 1, 10, 100, 1000, at boundaries.",
    ),
)
