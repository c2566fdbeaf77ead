"""The methods of Hsu et al. (2018) with their settings, and the paper's rows beside them.

Adam and all penalties run on Adam. MAS measures importance over mini-batches, as their code does; the Fisher is per
sample, but over mini-batches for Permuted domain learning.
"""

from __future__ import annotations

from typing import Any, Literal

from bgd.experiments.builtin.presets import HSU, PAPER_SETTINGS
from bgd.experiments.declaration import Reported, Row, RowInColumn
from bgd.runs.config import NetConfig, Setup, TestConfig

COEFFICIENTS: dict[str, dict[str, dict[str, float]]] = {
    "split": {
        "L2": {"task": 0.01, "domain": 0.5, "class": 100},
        "EWC": {"task": 100, "domain": 100, "class": 600},
        "Online EWC": {"task": 400, "domain": 700, "class": 100},
        "SI": {"task": 300, "domain": 3000, "class": 600},
        "MAS": {"task": 1, "domain": 10000, "class": 1},
    },
    "permuted": {
        "L2": {"task": 0.001, "domain": 0.02, "class": 0},
        "EWC": {"task": 500, "domain": 150, "class": 10},
        "Online EWC": {"task": 500, "domain": 250, "class": 50},
        "SI": {"task": 1, "domain": 10, "class": 0.3},
        "MAS": {"task": 0.01, "domain": 0.1, "class": 0.003},
    },
}
AS_OTHERS = "BGD, torch's initialisation"
AS_OTHERS_NOTE = (
    "BGD starts from Xavier's initialisation, as the paper states for all its experiments; Hsu et al., whose set-up it "
    "follows, from torch's, which is a row of its own."
)
LWF_NOTE = (
    "LwF: Hsu et al. published no code for it, and their numbers equal those of van de Ven & Tolias (2018): it runs as "
    "these do (temperature 2, the new task weighs 1 / t in the t-th, old heads count by their mean)."
)
METHOD_OF_LABEL = {"L2": "l2", "EWC": "ewc", "Online EWC": "online-ewc", "SI": "si", "MAS": "mas"}


def baselines(adam: float, sgd: dict[str, float], adagrad: float) -> dict[str, Row]:
    """Adam, SGD (by column) and Adagrad with their learning rates.

    >>> baselines(0.001, {"task": 0.01}, 0.01)["SGD"].columns["task"].settings
    {'lr': 0.01}
    """
    return {
        "Adam": Row(method="adam", settings={"lr": adam}),
        "SGD": Row(method="sgd", columns={column: RowInColumn(settings={"lr": lr}) for column, lr in sgd.items()}),
        "Adagrad": Row(method="adagrad", settings={"lr": adagrad}),
    }


def penalties(data: str, lr: float, columns: dict[str, str]) -> dict[str, Row]:
    """L2, EWC, Online EWC, SI and MAS; ``columns`` gives the kind of learning of each column.

    >>> penalties("split", 0.001, {"+ labels trick": "class"})["EWC"].columns["+ labels trick"].settings
    {'coefficient': 600}
    """
    rows = {}
    for label, by_kind in COEFFICIENTS[data].items():
        settings: dict[str, Any] = {"lr": lr}
        if label == "MAS":
            settings["importance_over"] = "batch"
        cells = {}
        for column, kind in columns.items():
            own: dict[str, Any] = {"coefficient": by_kind[kind]}
            if "EWC" in label and (data, kind) == ("permuted", "domain"):
                own["fisher_over"] = "batch"
            cells[column] = RowInColumn(settings=own)
        rows[label] = Row(method=METHOD_OF_LABEL[label], settings=settings, columns=cells)
    return rows


def lwf(lr: float) -> Row:
    """LwF as van de Ven & Tolias (2018) run it, whose numbers the tables cite.

    >>> lwf(0.001).settings["balance"]
    True
    """
    return Row(
        method="lwf",
        settings={"lr": lr, "coefficient": 1.0, "temperature": 2.0, "balance": True, "distil_over": "seen"},
    )


def bgd(
    std_init: dict[str, float],
    test: TestConfig,
    loss_over_all: tuple[str, ...] = (),
    init: Literal["xavier", "torch"] = "xavier",
    **settings: Any,
) -> Row:
    """BGD as the paper runs it, in the columns that have a ``std_init``: K = 10, eta = 1, or ``settings``.

    In class learning its authors' loss runs over all outputs.

    >>> row = bgd({"task": 0.02}, TestConfig(inference="mc"), std_max="init")
    >>> row.only, row.settings["std_max"], row.columns["task"].settings
    (('task',), 'init', {'std_init': 0.02})
    """
    everything = Setup(loss_over="all")
    return Row(
        method="bgd",
        settings=PAPER_SETTINGS | settings,
        setup=Setup(net=NetConfig(init=init), test=test),
        only=tuple(std_init),
        columns={
            column: RowInColumn(settings={"std_init": std}, setup=everything if column in loss_over_all else Setup())
            for column, std in std_init.items()
        },
    )


def reported(table: str, columns: tuple[str, ...], own: str | None = None) -> dict[str, dict[str, Reported]]:
    """The paper's table, a line for each row: the label, then mean and spread for each column.

    The paper takes all but BGD from Hsu et al., except for the column ``own``.

    >>> reported("Adam  93.46 2.01", ("task",))["Adam"]["task"].spread
    2.01
    """
    rows = {}
    for line in table.strip().splitlines():
        parts = line.split()
        label, numbers = " ".join(parts[: -2 * len(columns)]), [float(part) for part in parts[-2 * len(columns) :]]
        rows[label] = {
            column: Reported(mean=mean, spread=spread, runs=10, source="" if label == "BGD" or column == own else HSU)
            for column, mean, spread in zip(columns, numbers[::2], numbers[1::2], strict=True)
        }
    return rows
