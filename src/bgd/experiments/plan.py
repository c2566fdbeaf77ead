"""From a declaration to the runs it stands for, every one checked before the first begins."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from bgd.errors import suggest
from bgd.experiments.declaration import Cell, Experiment, ExperimentError, Preset
from bgd.methods import METHODS
from bgd.runs.config import RunConfig, Setup, unused
from bgd.runs.validation import validate


def merged(*layers: BaseModel) -> dict[str, Any]:
    """What the layers give, later ones over earlier ones; what a layer leaves open shows through.

    >>> merged(Setup(stream={"epochs": 4}), Setup(stream={"batch_size": 8}))
    {'stream': {'epochs': 4, 'batch_size': 8}}
    """
    result: dict[str, Any] = {}
    for layer in layers:
        _lay(result, layer.model_dump(exclude_unset=True))
    return result


def _lay(ground: dict[str, Any], layer: Mapping[str, Any]) -> None:
    for key, value in layer.items():
        if isinstance(value, Mapping) and isinstance(ground.get(key), dict):
            _lay(ground[key], value)
        else:
            ground[key] = dict(value) if isinstance(value, Mapping) else value


def preset_of(experiment: Experiment, name: str | None = None) -> tuple[str, Preset]:
    """A preset by name; by default ``quick``, or the first where there is none.

    >>> from bgd.experiments import find
    >>> preset_of(find("digits"), "smok")
    Traceback (most recent call last):
    bgd.experiments.declaration.ExperimentError: digits has no preset 'smok': did you mean 'smoke'?
    """
    if name is None:
        name = "quick" if "quick" in experiment.presets else next(iter(experiment.presets))
    if name not in experiment.presets:
        raise ExperimentError(f"{experiment.name} has no preset {name!r}: {suggest(name, experiment.presets)}")
    return name, experiment.presets[name]


def plan(
    experiment: Experiment,
    preset: str | None = None,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    device: str = "cpu",
) -> list[RunConfig]:
    """The runs of a comparison: rows x columns x seeds, seed by seed, so that whole tables come early.

    Args:
        experiment: the declaration.
        preset: its scale.
        rows: labels of rows, or names of methods; None for all.
        columns: labels of columns; None for all.
        seeds: instead of the preset's.
        device: of torch.

    Raises:
        ExperimentError: for a name that the experiment does not have.
        RunError: for a run that could not be done, such as a setting that its method does not know.

    >>> from bgd.experiments import find
    >>> [config.title for config in plan(find("labels-trick"), "smoke", rows=["BGD"])]
    ['BGD, class learning, seed 2019', 'BGD, + labels trick, seed 2019']
    >>> sorted({config.row for config in plan(find("mc-samples"), "smoke", rows="SGD, K = 2, capped".split(", "))})
    ['K = 2, capped', 'SGD']
    """
    preset, _ = preset_of(experiment, preset)
    chosen = places(experiment, preset, rows=rows, columns=columns, seeds=seeds)
    configs = [resolve(experiment, preset, *place, device) for place in chosen]
    checked = set()
    for config in configs:
        if (config.row, config.column) not in checked:  # one seed stands for all
            validate(config)
            checked.add((config.row, config.column))
    return configs


def places(
    experiment: Experiment,
    preset: str | None = None,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[tuple[str, str, int]]:
    """Row, column and seed of each run that ``plan`` gives for these arguments, without looking into the runs.

    >>> from bgd.experiments import find
    >>> places(find("labels-trick"), "smoke", rows=["BGD"])  # the row of this label; "bgd" is all rows of the method
    [('BGD', 'class learning', 2019), ('BGD', '+ labels trick', 2019)]
    """
    _, scale = preset_of(experiment, preset)
    rows = _rows(experiment, rows) if rows else list(scale.rows or experiment.rows)
    cells = _choose("column", columns, experiment.columns) if columns else list(experiment.columns)
    chosen = [
        (row, column, seed)
        for seed in (seeds or scale.seeds or experiment.seeds)
        for column in cells
        for row in rows
        if column in (experiment.rows[row].only or experiment.columns)
    ]
    if not chosen:
        raise ExperimentError(f"{experiment.name}: nothing to run: none of {rows} takes part in {cells}")
    return chosen


def resolve(experiment: Experiment, preset: str, row: str, column: str, seed: int, device: str = "cpu") -> RunConfig:
    """One run with nothing left open."""
    scale, method = experiment.presets[preset], experiment.rows[row]
    cell = method.columns.get(column, Cell())
    setup = merged(
        experiment.setup,
        experiment.columns[column],
        method.setup,
        cell.setup,
        scale.setup,
        scale.columns.get(column, Setup()),
    )
    return RunConfig(
        experiment=experiment.name,
        preset=preset,
        row=row,
        column=column,
        seed=seed,
        method=method.method,
        settings=method.settings | cell.settings | scale.settings.get(row, {}),
        setup=Setup.model_validate(setup),
        device=device,
    )


def check_declaration(experiment: Experiment) -> None:
    """Refuse a declaration that names rows or columns it does not have, in any of its parts.

    >>> check_declaration(Experiment(name="e", title="E", rows={"A": {"method": "sgd", "only": ["B"]}}))
    Traceback (most recent call last):
    bgd.experiments.declaration.ExperimentError: rows.A.only: no column 'B': choose one of accuracy
    """
    rows, columns = experiment.rows, experiment.columns
    named: list[tuple[str, str, Iterable[str], Mapping[str, Any]]] = []
    for label, row in rows.items():
        if row.method not in METHODS:
            raise ExperimentError(f"rows.{label}.method: no method {row.method!r}: {suggest(row.method, METHODS)}")
        named.append((f"rows.{label}.only", "column", row.only or (), columns))
        own = {column: columns.get(column) for column in row.only} if row.only else columns
        named.append((f"rows.{label}.columns", "column", row.columns, own))
    for name, preset in experiment.presets.items():
        named.append((f"presets.{name}.columns", "column", preset.columns, columns))
        named.append((f"presets.{name}.settings", "method", preset.settings, rows))
        named.append((f"presets.{name}.rows", "method", preset.rows or (), rows))
    named.append(("times_of", "method", [experiment.times_of] if experiment.times_of else (), rows))
    named.append(("highlight", "method", [experiment.highlight] if experiment.highlight else (), rows))
    named.append(("paper", "method", experiment.paper, rows))
    named += [(f"paper.{row}", "column", cells, columns) for row, cells in experiment.paper.items()]
    for where, what, names, known in named:
        for one in names:
            if one not in known:
                raise ExperimentError(f"{where}: no {what} {one!r}: {suggest(one, known)}")


def check_parts(experiment: Experiment) -> None:
    """Refuse a declaration that sets what plays no part in any of the runs that it is said of.

    >>> endless = Experiment(name="e", title="E", rows={"A": {"method": "sgd"}}, setup={"stream": {"beta": 2}})
    >>> check_parts(endless)
    Traceback (most recent call last):
    bgd.experiments.declaration.ExperimentError: setup.stream.beta: plays no part here: the stream is discrete, ...
    """
    setups = {
        (preset, row, column): resolve(experiment, preset, row, column, seed).setup
        for preset in experiment.presets
        for row, column, seed in places(experiment, preset, seeds=experiment.seeds[:1])
    }
    for where, layer, applies in _layers(experiment):
        below = [
            setup for run, setup in setups.items() if all(a in (None, r) for a, r in zip(applies, run, strict=True))
        ]
        given = layer.model_dump(exclude_unset=True)
        for key in (f"{part}.{name}" for part, inner in given.items() if isinstance(inner, dict) for name in inner):
            _check_part(f"{where}.{key}", key, below)


Applies = tuple[str | None, str | None, str | None]
"""The preset, row and column that something is said of; None for all."""


def _layers(experiment: Experiment) -> Iterator[tuple[str, Setup, Applies]]:
    """Every setup of a declaration, with its place and the runs it is for."""
    yield "setup", experiment.setup, (None, None, None)
    for column, setup in experiment.columns.items():
        yield f"columns.{column}", setup, (None, None, column)
    for label, row in experiment.rows.items():
        yield f"rows.{label}.setup", row.setup, (None, label, None)
        for column, cell in row.columns.items():
            yield f"rows.{label}.columns.{column}.setup", cell.setup, (None, label, column)
    for name, preset in experiment.presets.items():
        yield f"presets.{name}.setup", preset.setup, (name, None, None)
        for column, setup in preset.columns.items():
            yield f"presets.{name}.columns.{column}", setup, (name, None, column)


def _check_part(where: str, key: str, setups: Sequence[Setup]) -> None:
    """Refuse a key that plays no part in any of the setups."""
    if setups and all(key in unused(setup) for setup in setups):
        first = setups[0]
        kind = f"the stream is {first.stream.kind}, tasks.kind is {first.tasks.kind}, the net is {first.net.name}"
        raise ExperimentError(f"{where}: plays no part here: {kind}")


def overridden(experiment: Experiment, preset: str, changes: Sequence[str]) -> Experiment:
    """The experiment with the user's own values (``key=value``) over everything that its preset says.

    A key is a path into the setup (``stream.epochs``, ``data.train``, ``net.widths``), or a row's label or method
    and one of its settings (``bgd.mc_samples``). A value is read as JSON, or else as a word.

    >>> from bgd.experiments import find
    >>> changed = overridden(find("digits"), "smoke", ["bgd.mc_samples=2", "stream.batch_size=16"])
    >>> changed.presets["smoke"].setup.stream.batch_size, changed.presets["smoke"].settings["BGD"]
    (16, {'mc_samples': 2})
    """
    setup: dict[str, Any] = {}
    settings: dict[str, dict[str, Any]] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key:
            raise ExperimentError(f"--set {change}: write it as key=value, such as stream.epochs=2")
        value = _value(text)
        first, _, rest = key.partition(".")
        if first in Setup.model_fields:
            _lay(setup, _nested(key.split("."), value))
            continue
        if not rest:
            known = [*Setup.model_fields, *(f"{label}.SETTING" for label in experiment.rows)]
            raise ExperimentError(f"--set {key}: no such key: {suggest(key, known)}")
        # a label may hold dots: the setting is what follows the last
        label, _, setting = key.rpartition(".")
        for row in _rows(experiment, [label]):
            settings.setdefault(row, {})[setting] = value
    scale = experiment.presets[preset]
    laid = merged(scale, Preset.model_construct(setup=_partial(setup, changes), settings=settings))
    for column in laid.get("columns", {}):  # the user's word stands over the preset's columns too
        _lay(laid["columns"][column], setup)
    presets = dict(experiment.presets) | {preset: Preset.model_validate(laid)}
    return experiment.model_copy(update={"presets": presets})


def check_changes(changes: Sequence[str], configs: Sequence[RunConfig]) -> None:
    """Refuse a value of the user's own (``key=value``) that plays no part in any of the runs.

    >>> check_changes(["stream.iterations=9"], [RunConfig(method="sgd")])
    Traceback (most recent call last):
    bgd.experiments.declaration.ExperimentError: --set stream.iterations: plays no part here: the stream is ...
    """
    for key, _, text in (change.partition("=") for change in changes):
        first, value = key.partition(".")[0], _value(text)
        if first not in Setup.model_fields:
            label = key.rpartition(".")[0].lower()
            if configs and not any(label in (config.row.lower(), config.method) for config in configs):
                raise ExperimentError(
                    f"--set {key}: plays no part here: no run of {key.rpartition('.')[0]} is asked for"
                )
            continue
        for path in (f"{key}.{name}" for name in value) if isinstance(value, dict) and first == key else (key,):
            _check_part(f"--set {path}", path, [config.setup for config in configs])


def _partial(setup: dict[str, Any], changes: Sequence[str]) -> Setup:
    try:
        return Setup.model_validate(setup)
    except ValidationError as error:
        raise ExperimentError(f"--set {' '.join(changes)}: {explain(error, Setup)}") from None


def _nested(path: list[str], value: Any) -> dict[str, Any]:
    return {path[0]: value if len(path) == 1 else _nested(path[1:], value)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"None": None, "True": True, "False": False}.get(text, text)


def comparison_folder(out: Path, experiment: Experiment, preset: str, changes: Sequence[str] = ()) -> Path:
    """Where the runs of a comparison go: one folder for each experiment, preset and set of changes.

    >>> from bgd.experiments import find
    >>> comparison_folder(Path("runs"), find("digits"), "smoke").as_posix()
    'runs/digits-smoke'
    """
    suffix = f"-set-{hashlib.sha256(json.dumps(sorted(changes)).encode()).hexdigest()[:8]}" if changes else ""
    return out / f"{experiment.name}-{preset}{suffix}"


def run_folder(comparison: Path, config: RunConfig) -> Path:
    """The folder of one run: its name can be read, and differs wherever the configuration does.

    >>> run_folder(Path("c"), RunConfig(method="sgd", row="SGD", column="+ trick", seed=3)).name[:18]
    'trick--sgd--3--...'
    """
    return comparison / "--".join(
        filter(None, [slug(config.column), slug(config.row), str(config.seed), config.digest])
    )


def slug(label: str) -> str:
    """A label as part of a file's name.

    >>> slug("My_own: +trick")
    'my-own-trick'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in label.lower()).split())


def _rows(experiment: Experiment, wanted: Sequence[str]) -> list[str]:
    """Labels, from labels or names of methods, in any case; where one is both, as it is written.

    A label may hold commas, at which a command line is cut: neighbours that make a label together are put together.
    """
    rows: list[str] = []
    rest = list(wanted)
    while rest:
        for count in range(len(rest), 0, -1):
            if found := _matching(experiment, ", ".join(rest[:count])):
                rows += [label for label in found if label not in rows]
                del rest[:count]
                break
        else:
            known = [*experiment.rows, *(row.method for row in experiment.rows.values())]
            raise ExperimentError(f"{experiment.name} has no method {rest[0]!r}: {suggest(rest[0], known)}")
    return rows


def _matching(experiment: Experiment, name: str) -> list[str]:
    low = name.lower()
    return (
        [label for label in experiment.rows if label == name]
        or [label for label, row in experiment.rows.items() if row.method == name]
        or [label for label, row in experiment.rows.items() if low in (label.lower(), row.method)]
    )


def _choose(what: str, wanted: Sequence[str], known: Mapping[str, Any]) -> list[str]:
    for name in wanted:
        if name not in known:
            raise ExperimentError(f"no {what} {name!r}: {suggest(name, known)}")
    return list(dict.fromkeys(wanted))


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """The first thing wrong, in one line: where, what, and what was meant.

    >>> try:
    ...     Setup.model_validate({"stream": {"epoch": 3}})
    ... except ValidationError as error:
    ...     print(explain(error, Setup))
    stream.epoch: no such key: did you mean 'epochs'?
    """
    first = error.errors()[0]
    loc = [str(part) for part in first["loc"]]
    where = ".".join(loc) or "here"
    if first["type"] == "extra_forbidden":
        if len(loc) == 1 and "setup" in model.model_fields and loc[0] in Setup.model_fields:
            return f"{where}: no such key here: it belongs in setup"
        return f"{where}: no such key: {suggest(loc[-1], _keys(model, loc[:-1]))}"
    if first["type"] == "missing":
        return f"{where}: missing"
    given = "" if isinstance(first.get("input"), dict) else f" {first['input']!r}:"
    if first["type"] == "literal_error" and isinstance(first["input"], str):
        choices = [choice.strip(" '") for choice in first["ctx"]["expected"].replace(" or ", ",").split(",")]
        return f"{where}:{given} {suggest(first['input'], choices)}"
    return f"{where}:{given} {first['msg'][:1].lower()}{first['msg'][1:]}"


def _keys(model: type[BaseModel], path: list[str]) -> list[str]:
    """The fields of the model that a path leads to; names in tables (rows, columns, presets) are stepped over."""
    for part in path:
        if part not in model.model_fields:
            continue
        inner = _model_in(model.model_fields[part].annotation)
        if inner is not None:
            model = inner
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in reversed(getattr(annotation, "__args__", ())):
        if (found := _model_in(inner)) is not None:
            return found
    return None
