"""A validated plan: the runs of an experiment at a preset, every one checked before the first begins.

:func:`make_plan` is the one gate. What it returns can run, up to the content of its data, and is trusted from there on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bgd.experiments.declaration import Experiment, ExperimentError
from bgd.experiments.layers import resolve
from bgd.experiments.overrides import Overrides, as_texts, parse_overrides
from bgd.experiments.selection import add_rows, find_preset, select_runs
from bgd.plugins import import_paths
from bgd.runs.config import RunConfig, Setup, unused
from bgd.runs.validation import validate


@dataclass(frozen=True)
class Plan:
    """The runs of a comparison, validated.

    Attributes:
        experiment: as declared.
        preset: the name of its scale.
        overrides: ``key=value``, over whatever is declared.
        configs: one for each run, seed by seed.
    """

    experiment: Experiment
    preset: str
    overrides: tuple[str, ...]
    configs: tuple[RunConfig, ...]


def make_plan(
    experiment: Experiment,
    preset: str | None = None,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    overrides: Mapping[str, Any] | Sequence[str] | None = None,
    device: str = "cpu",
) -> Plan:
    """The runs of a comparison: rows x columns x seeds.

    Args:
        experiment: the declaration.
        preset: its scale; None for ``quick``, or the first.
        rows: labels of rows, or names of methods; None for all.
        columns: labels of columns; None for all.
        seeds: instead of the preset's.
        overrides: values over whatever is declared: ``{"stream.epochs": 2}``, or ``["stream.epochs=2"]``.
        device: of torch.

    Raises:
        ExperimentError: for a name that the experiment does not have, or a key that has no effect.
        RunError: for a run that is not possible, such as a setting that its method does not have.

    >>> from bgd.experiments import find
    >>> [config.title for config in make_plan(find("labels-trick"), "smoke", rows=["BGD"]).configs]
    ['BGD, class learning, seed 2019', 'BGD, + labels trick, seed 2019']
    """
    preset, _ = find_preset(experiment, preset)
    texts = as_texts(overrides)
    parsed = parse_overrides(experiment, texts)
    experiment = add_rows(experiment, rows or ())
    selected = select_runs(experiment, preset, rows=rows, columns=columns, seeds=seeds)
    _check_layers(experiment)
    configs = [resolve(experiment, preset, *run, device, parsed) for run in selected]
    _check_overrides(parsed, configs)
    with import_paths(experiment.import_paths):
        for config in _one_seed_each(configs):
            validate(config)
    return Plan(experiment, preset, texts, tuple(configs))


def _one_seed_each(configs: Sequence[RunConfig]) -> list[RunConfig]:
    """A run of each row and column: seeds change nothing that is validated."""
    return list({(config.row, config.column): config for config in reversed(configs)}.values())[::-1]


ONE_TASK = ("tasks.count", 1)
"""Redundant rather than wrong where the whole data set is the only task."""

RunFilter = tuple[str | None, str | None, str | None]
"""The preset, row and column of the runs that a layer applies to; None for all."""


def _check_layers(experiment: Experiment) -> None:
    """Refuse a declaration with a key that has no effect on any of the runs it applies to.

    >>> endless = Experiment(name="e", title="E", rows={"A": {"method": "sgd"}}, setup={"stream": {"beta": 2}})
    >>> _check_layers(endless)
    Traceback (most recent call last):
    bgd.experiments.declaration.ExperimentError: setup.stream.beta: has no effect: the stream is discrete, ...
    """
    setups = {
        (preset, run.row, run.column): resolve(experiment, preset, *run).setup
        for preset in experiment.presets
        for run in select_runs(experiment, preset, seeds=experiment.seeds[:1])
    }
    for where, layer, applies in _layers(experiment):
        below = [
            setup for run, setup in setups.items() if all(a in (None, r) for a, r in zip(applies, run, strict=True))
        ]
        given = layer.model_dump(exclude_unset=True)
        for part, inner in given.items():
            for name, value in inner.items() if isinstance(inner, dict) else ():
                if (f"{part}.{name}", value) != ONE_TASK:
                    _check_effect(f"{where}.{part}.{name}", f"{part}.{name}", below)


def _layers(experiment: Experiment) -> Iterator[tuple[str, Setup, RunFilter]]:
    """Every setup of a declaration, with its path and the runs it applies to."""
    yield "setup", experiment.setup, (None, None, None)
    for column, setup in experiment.columns.items():
        yield f"columns.{column}", setup, (None, None, column)
    for label, row in experiment.rows.items():
        yield f"rows.{label}.setup", row.setup, (None, label, None)
        for column, in_column in row.columns.items():
            yield f"rows.{label}.columns.{column}.setup", in_column.setup, (None, label, column)
    for name, preset in experiment.presets.items():
        yield f"presets.{name}.setup", preset.setup, (name, None, None)
        for column, setup in preset.columns.items():
            yield f"presets.{name}.columns.{column}", setup, (name, None, column)


def _check_overrides(overrides: Overrides, configs: Sequence[RunConfig]) -> None:
    """Refuse an override that has no effect on any of the runs."""
    rows = {config.row for config in configs}
    if overrides.settings and not rows & set(overrides.settings):
        changed = next(iter(overrides.settings))
        raise ExperimentError(f"--set of {changed}: has no effect: no run of that row is selected")
    for key in overrides.keys:
        _check_effect(f"--set {key}", key, [config.setup for config in configs])


def _check_effect(where: str, key: str, setups: Sequence[Setup]) -> None:
    """Refuse a key that is unused in all of the setups."""
    if setups and all(key in unused(setup) for setup in setups):
        first = setups[0]
        kind = f"the stream is {first.stream.kind}, tasks.kind is {first.tasks.kind}, the net is {first.net.name}"
        raise ExperimentError(f"{where}: has no effect: {kind}")
