"""Which runs of an experiment: a preset by name, rows, columns and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bgd.errors import suggest
from bgd.experiments.declaration import Experiment, ExperimentError, Preset, Row, check_seeds


class RunKey(NamedTuple):
    """What identifies a run in its comparison."""

    row: str
    column: str
    seed: int


def find_preset(experiment: Experiment, name: str | None = None) -> tuple[str, Preset]:
    """A preset by name; by default ``quick``, or the first if there is none of that name.

    >>> from bgd.experiments import find
    >>> find_preset(find("digits"), "smok")
    Traceback (most recent call last):
    bgd.experiments.declaration.ExperimentError: digits has no preset 'smok': did you mean 'smoke'?
    """
    if name is None:
        name = "quick" if "quick" in experiment.presets else next(iter(experiment.presets))
    if name not in experiment.presets:
        raise ExperimentError(f"{experiment.name} has no preset {name!r}: {suggest(name, experiment.presets)}")
    return name, experiment.presets[name]


def select_runs(
    experiment: Experiment,
    preset: str | None = None,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[RunKey]:
    """Row, column and seed of each selected run, seed by seed, so that whole tables are complete early.

    >>> from bgd.experiments import find
    >>> runs = select_runs(find("labels-trick"), "smoke", rows=["BGD"])  # this label; "bgd" is all rows of the method
    >>> [tuple(run) for run in runs]
    [('BGD', 'class learning', 2019), ('BGD', '+ labels trick', 2019)]
    """
    _, scale = find_preset(experiment, preset)
    for name, value in (("rows", rows), ("columns", columns)):
        if isinstance(value, str):
            raise ExperimentError(f"{name}={value!r}: give a list of labels, such as [{value!r}]")
    if seeds is not None:
        check_seeds(tuple(seeds))
    labels = match_rows(experiment, rows) if rows else list(scale.rows or experiment.rows)
    chosen = match_columns(experiment, columns) if columns else list(experiment.columns)
    selected = [
        RunKey(row, column, seed)
        for seed in (seeds or scale.seeds or experiment.seeds)
        for column in chosen
        for row in labels
        if column in (experiment.rows[row].only or experiment.columns)
    ]
    if not selected:
        raise ExperimentError(f"{experiment.name}: nothing to run: none of {labels} takes part in {chosen}")
    return selected


def match_rows(experiment: Experiment, names: Sequence[str]) -> list[str]:
    """Labels of rows from labels or names of methods, in any case; an exact match counts before others.

    >>> from bgd.experiments import find
    >>> match_rows(find("mc-samples"), ["sgd", "k = 2, CAPPED"])
    ['SGD', 'K = 2, capped']
    """
    found: list[str] = []
    for name in names:
        lower = name.lower()
        labels = (
            [label for label in experiment.rows if label == name]
            or [label for label, row in experiment.rows.items() if row.method == name]
            or [label for label, row in experiment.rows.items() if lower in (label.lower(), row.method.lower())]
        )
        if not labels:
            known = [*experiment.rows, *(row.method for row in experiment.rows.values())]
            raise ExperimentError(f"{experiment.name} has no row {name!r}: {suggest(name, known)}")
        found += labels
    return list(dict.fromkeys(found))


def add_rows(experiment: Experiment, names: Sequence[str]) -> Experiment:
    """The experiment with a row of its own for each ``module:Class`` that it does not have.

    >>> from bgd.experiments import find
    >>> list(add_rows(find("digits"), ["SGD", "mypackage.tether:Tether"]).rows)[-1]
    'mypackage.tether:Tether'
    """
    known = {row.method for row in experiment.rows.values()} | set(experiment.rows)
    own = {name: Row(method=name) for name in names if ":" in name and name not in known}
    return experiment.model_copy(update={"rows": {**experiment.rows, **own}}) if own else experiment


def match_columns(experiment: Experiment, names: Sequence[str]) -> list[str]:
    """Labels of columns, in any case.

    >>> from bgd.experiments import find
    >>> match_columns(find("split-mnist"), ["CLASS"])
    ['class']
    """
    labels = {label.lower(): label for label in experiment.columns} | {label: label for label in experiment.columns}
    found: list[str] = []
    for name in names:
        label = labels.get(name) or labels.get(name.lower())
        if label is None:
            raise ExperimentError(f"{experiment.name} has no column {name!r}: {suggest(name, experiment.columns)}")
        found.append(label)
    return list(dict.fromkeys(found))
