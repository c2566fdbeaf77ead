"""A comparison in two small files, to publish or to keep in a repository.

experiment.json     the declaration, as in the folder that it comes from
runs.jsonl          a line for each finished run: what was measured, on what machine, by which command
remarks.md          beside them, if there are any

``bgd report`` and ``bgd compare`` read it as they read the folder. What only a resumed run needs stays behind;
training losses do unless the experiment shows them; six digits of every measured number remain.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bgd.experiments.comparison import FILE, PACKED, REMARKS, collect
from bgd.experiments.types import Experiment
from bgd.runs.folder import clear_errors, write_atomically
from bgd.runs.types import RunError, RunResult

DIGITS = 6


def pack(folder: Path, out: Path) -> Path:
    """Write a comparison's finished runs below ``out``, under the name of its folder; returns the new folder.

    The order is that of the tables, so that the same results give the same bytes and a new run adds a line.

    Raises:
        RunError: where there is no comparison, or none of its runs has finished.
    """
    collected = collect(folder)
    if not collected.results:
        raise RunError(f"{folder}: none of its runs has finished: go on with: bgd resume {folder}")
    target = out / folder.resolve().name
    if target.resolve() == folder.resolve():
        raise RunError(f"{target} is the comparison itself: choose another folder with --out")
    curves = shows_curves(collected.declaration.experiment)
    lines = [json.dumps(_small(result, curves)) for result in collected.results]
    with clear_errors(target):
        target.mkdir(parents=True, exist_ok=True)
        write_atomically(target / FILE, (folder / FILE).read_bytes())
        write_atomically(target / PACKED, "".join(f"{line}\n" for line in lines).encode())
        if collected.remarks and not (target / REMARKS).exists():  # those there may have been written since
            write_atomically(target / REMARKS, (folder / REMARKS).read_bytes())
    return target


def shows_curves(experiment: Experiment) -> bool:
    """Whether an experiment shows training losses, which its packed runs then keep.

    >>> from bgd.experiments import find
    >>> shows_curves(find("mc-samples")), shows_curves(find("split-mnist"))
    (True, False)
    """
    return "learning-curves" in experiment.figures


def _small(result: RunResult, curves: bool) -> dict[str, Any]:
    # through JSON, in which the loss of a network that has blown up is "NaN": to Python it would be a bare NaN
    record: dict[str, Any] = json.loads(result.model_dump_json(exclude=None if curves else {"curve"}))
    kept = {"config": record.pop("config")}  # settings are exact
    return kept | {"curve": []} | {key: rounded(value) for key, value in record.items()}


def rounded(value: Any) -> Any:
    """Floats in lists and tables to six significant digits; everything else as it is.

    >>> rounded({"loss": [0.123456789, 1], "name": "0.123456789"})
    {'loss': [0.123457, 1], 'name': '0.123456789'}
    """
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [rounded(one) for one in value]
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return value
