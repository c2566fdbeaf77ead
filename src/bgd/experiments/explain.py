"""The first of pydantic's errors as one line: the key, the value and the fix."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from bgd.errors import suggest
from bgd.runs.config import Setup


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """The first error in one line.

    >>> try:
    ...     Setup.model_validate({"stream": {"epoch": 3}})
    ... except ValidationError as error:
    ...     print(explain(error, Setup))
    stream.epoch: no such key: did you mean 'epochs'?
    """
    first = error.errors()[0]
    location = [str(part) for part in first["loc"]]
    if not location and first["type"] == "value_error":  # a check of the whole model names the key itself
        return str(first["ctx"]["error"])
    where = ".".join(location) or "the file"
    if first["type"] == "extra_forbidden":
        if len(location) == 1 and "setup" in model.model_fields and location[0] in Setup.model_fields:
            return f"{where}: no such key at the top level: it belongs in setup"
        return f"{where}: no such key: {suggest(location[-1], _keys(model, location[:-1]))}"
    if first["type"] == "missing":
        return f"{where}: missing"
    given = "" if isinstance(first.get("input"), dict) else f" {first['input']!r}:"
    if first["type"] == "literal_error" and isinstance(first["input"], str):
        choices = [choice.strip(" '") for choice in first["ctx"]["expected"].replace(" or ", ",").split(",")]
        return f"{where}:{given} {suggest(first['input'], choices)}"
    return f"{where}:{given} {first['msg'][:1].lower()}{first['msg'][1:]}"


def _keys(model: type[BaseModel], path: list[str]) -> list[str]:
    """The fields of the model at the end of a path; labels (of rows, columns, presets) are skipped."""
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
