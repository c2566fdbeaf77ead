"""Whether the folder of a run fits today's defaults and data, so that the run may continue or its result be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bgd.data.types import DataError
from bgd.methods.registry import settings_of
from bgd.runs.config import RunConfig
from bgd.runs.data import data_digest, data_names
from bgd.runs.errors import RunError
from bgd.runs.folder import read_machine
from bgd.runs.result import Machine


def check_compatible(config: RunConfig, folder: Path) -> None:
    """Refuse to continue, or to use the result of, a run that had other defaults or other arrays of the user's own.

    Raises:
        RunError: names what has changed and the way out.

    >>> check_compatible(RunConfig(method="sgd"), Path("not-begun"))
    """
    machine = read_machine(folder)
    if machine is None:
        return
    way_out = f"since {folder} was made: remove that folder to run again, or keep both with another --out"
    now = _as_stored(settings_of(config.method) | config.settings)
    if changed := [key for key, value in machine.settings.items() if now.get(key) != value]:
        raise RunError(f"{config.title}: the default of {', '.join(changed)} has changed {way_out}")
    before = machine.versions.get("data")
    if before is None:
        return
    try:
        same = data_digest(config.setup.data) == before
    except DataError:
        return  # a finished run can be read without its data; an unfinished one fails with a clear error of its own
    if not same:
        raise RunError(f"{config.title}: {', '.join(data_names(config.setup.data))} has changed {way_out}")


def _as_stored(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as they are read back from a file: lists for tuples, strings for infinities."""
    return Machine.model_validate_json(Machine(settings=settings).model_dump_json()).settings
