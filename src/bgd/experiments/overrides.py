"""Values that override whatever an experiment declares: ``--set KEY=VALUE``, or a mapping in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from bgd.errors import suggest
from bgd.experiments.declaration import Experiment, ExperimentError
from bgd.experiments.explain import explain
from bgd.experiments.selection import match_rows
from bgd.runs.config import Setup

CONSTANTS = {"None": None, "True": True, "False": False}


@dataclass(frozen=True)
class Overrides:
    """Overrides, parsed.

    Attributes:
        setup: of all runs; only the keys that are given.
        settings: of methods, by the label of the row.
        keys: of the setup, as paths such as ``stream.epochs``.
    """

    setup: Setup = field(default_factory=Setup)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    keys: tuple[str, ...] = ()

    def settings_of(self, row: str) -> dict[str, Any]:
        """The settings that are overridden in a row."""
        return dict(self.settings.get(row, {}))


NO_OVERRIDES = Overrides()


def as_texts(overrides: Mapping[str, Any] | Sequence[str] | None) -> tuple[str, ...]:
    """Overrides in the form of the command line, in which they are stored.

    >>> as_texts({"stream.epochs": 2, "bgd.std_max": None, "loss_over": "all"})
    ('stream.epochs=2', 'bgd.std_max=null', 'loss_over=all')
    """
    if not isinstance(overrides, Mapping):
        return tuple(overrides or ())
    return tuple(f"{key}={_text(value)}" for key, value in overrides.items())


def parse_overrides(experiment: Experiment, texts: Sequence[str]) -> Overrides:
    """Overrides from texts ``key=value``.

    A key is a path into the setup (``stream.epochs``, ``data.train``, ``net.widths``), or a row's label or method
    and one of its settings (``bgd.mc_samples``). A value is read as JSON, or else as text.

    >>> from bgd.experiments import find
    >>> parsed = parse_overrides(find("digits"), ["bgd.mc_samples=2", "stream.batch_size=16"])
    >>> parsed.setup.stream.batch_size, parsed.settings["BGD"], parsed.keys
    (16, {'mc_samples': 2}, ('stream.batch_size',))
    """
    setup: dict[str, Any] = {}
    settings: dict[str, dict[str, Any]] = {}
    keys: list[str] = []
    for text in texts:
        key, equals, written = text.partition("=")
        if not equals or not key:
            raise ExperimentError(f"--set {text}: write it as key=value, such as stream.epochs=2")
        value = _value(written)
        first, _, rest = key.partition(".")
        if first in Setup.model_fields:
            _insert(setup, key.split("."), value)
            keys += [f"{key}.{name}" for name in value] if isinstance(value, dict) and not rest else [key]
        elif rest:
            label, _, setting = key.rpartition(".")  # a label may contain dots
            for row in match_rows(experiment, [label]):
                settings.setdefault(row, {})[setting] = value
        else:
            known = [*Setup.model_fields, *(f"{label}.SETTING" for label in experiment.rows)]
            raise ExperimentError(f"--set {key}: no such key: {suggest(key, known)}")
    try:
        return Overrides(Setup.model_validate(setup), settings, tuple(keys))
    except ValidationError as error:
        raise ExperimentError(f"--set {' '.join(texts)}: {explain(error, Setup)}") from None


def _insert(target: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        inner = target.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ExperimentError(f"--set {'.'.join(path)}: {part} is already set to {inner!r}")
        target = inner
    if isinstance(value, dict) and isinstance(target.get(path[-1]), dict):
        target[path[-1]] |= value
    else:
        target[path[-1]] = value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return CONSTANTS.get(text, text)


def _text(value: Any) -> str:
    """The shortest text that is read as the value again."""
    if isinstance(value, str) and _value(value) == value:
        return value
    return json.dumps(value)
