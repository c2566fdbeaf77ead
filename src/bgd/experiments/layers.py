"""From the layers of a declaration to the configuration of one run.

A row overrides the experiment, a preset overrides both, and ``--set`` overrides everything; in each of the first
three, what is given for one column overrides what is given for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from bgd.experiments.declaration import Experiment, RowInColumn
from bgd.experiments.overrides import NO_OVERRIDES, Overrides
from bgd.runs.config import RunConfig, Setup


def merge(*layers: BaseModel) -> dict[str, Any]:
    """The values that are given, those of later layers over those of earlier ones.

    >>> merge(Setup(stream={"epochs": 4}), Setup(stream={"batch_size": 8}))
    {'stream': {'epochs': 4, 'batch_size': 8}}
    """
    result: dict[str, Any] = {}
    for layer in layers:
        _merge_into(result, layer.model_dump(exclude_unset=True))
    return result


def merge_setups(*setups: Setup) -> Setup:
    """Setups merged, later ones over earlier ones.

    >>> merge_setups(Setup(scenario="class"), Setup(stream={"epochs": 4})).stream.epochs
    4
    """
    return Setup.model_validate(merge(*setups))


def _merge_into(target: dict[str, Any], layer: Mapping[str, Any]) -> None:
    for key, value in layer.items():
        if isinstance(value, Mapping) and isinstance(target.get(key), dict):
            _merge_into(target[key], value)
        else:
            target[key] = dict(value) if isinstance(value, Mapping) else value


def resolve(
    experiment: Experiment,
    preset: str,
    row: str,
    column: str,
    seed: int,
    device: str = "cpu",
    overrides: Overrides = NO_OVERRIDES,
) -> RunConfig:
    """The complete configuration of one run.

    >>> from bgd.experiments import find
    >>> config = resolve(find("split-mnist"), "paper", "EWC", "class", seed=2019)
    >>> config.settings["coefficient"], config.setup.loss_over
    (600, 'seen')
    """
    declared, scale = experiment.rows[row], experiment.presets[preset]
    in_column = declared.columns.get(column, RowInColumn())
    setup = merge_setups(
        *(experiment.setup, experiment.columns[column]),
        *(declared.setup, in_column.setup),
        *(scale.setup, scale.columns.get(column, Setup())),
        overrides.setup,
    )
    return RunConfig(
        experiment=experiment.name,
        preset=preset,
        row=row,
        column=column,
        seed=seed,
        method=declared.method,
        settings=declared.settings | in_column.settings | scale.settings.get(row, {}) | overrides.settings_of(row),
        setup=setup,
        device=device,
    )
