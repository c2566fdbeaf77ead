"""A comparison in two small files, to publish or to keep in a repository.

experiment.json     the declaration, as in the folder that it comes from
runs.jsonl          a line for each finished run: what was measured, on what machine, by which command
failed.jsonl        a line for each run that failed, if any did
remarks.md          beside them, if there are any

``bgd report`` and ``bgd compare`` read it as they read the folder. What only a resumed run needs stays behind, as does
the place where results went; training losses do unless the experiment shows them; six digits of every measured number
remain.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bgd.experiments.declaration import Experiment
from bgd.experiments.storage import (
    FAILED,
    PACKED,
    REMARKS,
    FailedRun,
    StoredComparison,
    collect,
    declared,
    in_order,
    read_lines,
    read_packed,
    run_key,
    write_declaration,
)
from bgd.files import write_atomically
from bgd.runs.errors import RunError
from bgd.runs.folder import clear_errors, last_line, read_config
from bgd.runs.result import RunResult

DIGITS = 6


def pack(folder: Path, out: Path) -> Path:
    """Write a comparison's finished runs below ``out``, under the name of its folder; returns the new folder.

    The order is that of the tables, so that the same results give the same bytes and a new run adds a line. What is
    packed there already stays, unless the folder holds the same run anew. Failed runs are kept in mind, so that no
    table is better for their absence.

    Raises:
        RunError: where there is no comparison, none of its runs has finished, or the packed ones do not fit it.
    """
    collected = collect(folder)
    if not collected.results:
        raise RunError(f"{folder}: none of its runs has finished: go on with: bgd resume {folder}")
    target = out / folder.resolve().name
    if target.resolve() == folder.resolve():
        raise RunError(f"{target} is the comparison itself: choose another folder with --out")
    experiment = collected.declaration.experiment
    results = {run_key(result.config): result for result in _packed_before(target, collected)}
    results |= {run_key(result.config): result for result in collected.results}
    failed = [FailedRun(config=read_config(path), why=last_line(path)) for path in collected.failed]
    before = read_lines(target / FAILED, FailedRun)
    lost = list({run_key(one.config): one for one in (*before, *collected.lost, *failed)}.values())
    lost = [one for one in lost if run_key(one.config) not in results and declared(collected.declaration, one.config)]
    curves = shows_curves(experiment)
    with clear_errors(target):
        target.mkdir(parents=True, exist_ok=True)
        command = without_out(collected.declaration.command)
        write_declaration(target, collected.declaration.model_copy(update={"command": command}))
        write_atomically(
            target / PACKED, _lines(_small(result, curves) for result in in_order(experiment, results.values()))
        )
        if lost:
            write_atomically(target / FAILED, _lines(json.loads(one.model_dump_json()) for one in lost))
        else:
            (target / FAILED).unlink(missing_ok=True)
        if collected.remarks and not (target / REMARKS).exists():  # those there may have been written since
            write_atomically(target / REMARKS, (folder / REMARKS).read_bytes())
    return target


def _packed_before(target: Path, collected: StoredComparison) -> list[RunResult]:
    """What the target holds already; an error where the comparison that is to be packed does not know it."""
    before = read_packed(target)
    strangers = [result.config for result in before if not declared(collected.declaration, result.config)]
    if strangers:
        raise RunError(
            f"{target / PACKED} holds {len(strangers)} of {len(before)} runs that {collected.folder} does not declare, "
            f"such as {strangers[0].title}: choose another folder with --out, or remove that file to leave them out"
        )
    return before


def _lines(records: Iterable[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


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
    if record.get("machine"):
        record["machine"]["command"] = without_out(record["machine"]["command"])
    kept = {"config": record.pop("config")}  # settings are exact
    return kept | {"curve": []} | {key: rounded(value) for key, value in record.items()}


def without_out(command: str) -> str:
    """A command without the place of its results, which is a path of somebody's machine and decides nothing.

    >>> without_out("bgd run digits --out /home/me/runs --methods 'K = 2, capped'")
    "bgd run digits --methods 'K = 2, capped'"
    """
    try:
        words = shlex.split(command)
    except ValueError:  # as some early runs wrote it, without quotes
        return command
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if "--out" not in (before, word) and not word.startswith("--out=")
    ]
    return command if kept == words else shlex.join(kept)


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
