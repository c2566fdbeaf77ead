"""Labels of rows and columns, their order, and configurations as flat keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bgd.runs.config import RunConfig


def row_of(config: RunConfig) -> str:
    """The row of a run; without a declaration, its method.

    >>> row_of(RunConfig(experiment="mine", method="bgd"))
    'bgd'
    """
    return config.row or config.method


def column_of(config: RunConfig) -> str:
    """The column of a run; without a declaration there is one.

    >>> column_of(RunConfig(experiment="mine", method="bgd"))
    'accuracy'
    """
    return config.column or "accuracy"


def order_labels(found: Sequence[str], declared: Iterable[str]) -> tuple[str, ...]:
    """Declared labels that were found first, then the others in alphabetical order: the same on every machine.

    >>> order_labels(["SGD", "mine", "BGD"], declared=["BGD", "SGD", "Adam"])
    ('BGD', 'SGD', 'mine')
    """
    known = [name for name in declared if name in found]
    return (*known, *sorted(set(found).difference(known)))


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested configuration as dotted keys.

    >>> flatten({"data": {"name": "mnist"}, "seed": 1})
    {'data.name': 'mnist', 'seed': 1}
    """
    flat: dict[str, Any] = {}
    for key, item in config.items():
        flat |= flatten(item, f"{prefix}{key}.") if isinstance(item, Mapping) else {prefix + key: item}
    return flat
