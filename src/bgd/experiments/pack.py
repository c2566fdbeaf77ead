"""A comparison in two small files, to publish or to keep in a repository.

experiment.json     the declaration, as in the original folder
runs.jsonl          a line for each finished run: what was measured, on what machine, by which command
failed.jsonl        a line for each run that failed, if any did
SHA256SUMS          digests of the files above: a report refuses files that have changed since
remarks.md          beside them, if there are any

``bgd report`` and ``bgd compare`` read it as they read the folder. Left out are files that only a resumed run needs,
paths of the machine (``--out``, import paths), and training losses unless the experiment shows them; measured numbers
keep six digits.
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
    FILE,
    PACKED,
    PACKED_FILES,
    REMARKS,
    Declaration,
    DeclaredRuns,
    FailedRun,
    StoredComparison,
    declaration_content,
    in_order,
    read_comparison,
    read_lines,
    read_packed,
    run_key,
)
from bgd.files import write_atomically
from bgd.runs.digests import replace_files
from bgd.runs.errors import DamagedRun, RunError
from bgd.runs.folder import clear_errors, last_line, read_config
from bgd.runs.result import RunResult

DIGITS = 6


def pack(folder: Path, out: Path) -> Path:
    """Write a comparison's finished runs below ``out``, under the name of its folder; returns the new folder.

    The order is that of the tables, so that the same results give the same bytes and a new run adds a line. Runs that
    are packed there already stay, unless the folder holds the same run. Failed runs are recorded too, so that no table
    looks better for their absence.

    Raises:
        RunError: where there is no comparison, none of its runs has finished, one is damaged, or the packed ones do not
            fit it.
    """
    stored = read_comparison(folder)
    for reason in stored.damaged.values():  # a table must not look better for what is left out
        raise DamagedRun(reason)
    if not stored.results:
        raise RunError(f"{folder}: none of its runs has finished: continue with: bgd resume {folder}")
    target = out / folder.resolve().name
    if target.resolve() == folder.resolve():
        raise RunError(f"{target} is the comparison itself: choose another folder with --out")
    experiment = stored.declaration.experiment
    declared = DeclaredRuns(stored.declaration)
    results = {run_key(result.config): result for result in _packed_before(target, stored, declared)}
    results |= {run_key(result.config): result for result in stored.results}
    failed = [FailedRun(config=read_config(path), error=last_line(path)) for path in stored.failed]
    known = (*read_lines(target / FAILED, FailedRun), *stored.packed_failures, *failed)
    failures = [
        one
        for key, one in {run_key(one.config): one for one in known}.items()
        if key not in results and one.config in declared
    ]
    curves = shows_curves(experiment)
    with clear_errors(target):
        target.mkdir(parents=True, exist_ok=True)
        if not failures:
            (target / FAILED).unlink(missing_ok=True)
        contents = {
            FILE: declaration_content(_without_paths(stored.declaration)),
            PACKED: _lines(_small(result, curves) for result in in_order(experiment, results.values())),
            FAILED: _lines(json.loads(one.model_dump_json()) for one in failures),
        }
        replace_files(target, {name: content for name, content in contents.items() if content}, PACKED_FILES)
        if stored.remarks and not (target / REMARKS).exists():  # those there may have been written since
            write_atomically(target / REMARKS, (folder / REMARKS).read_bytes())
    return target


def _packed_before(target: Path, stored: StoredComparison, declared: DeclaredRuns) -> list[RunResult]:
    """The runs that the target holds already; an error if the comparison does not declare them."""
    before = read_packed(target)
    undeclared = [result.config for result in before if result.config not in declared]
    if undeclared:
        raise RunError(
            f"{target / PACKED} holds {len(undeclared)} of {len(before)} runs that {stored.folder} does not declare, "
            f"such as {undeclared[0].title}: choose another folder with --out, or remove that file to leave them out"
        )
    return before


def _without_paths(declaration: Declaration) -> Declaration:
    """A declaration without folders of somebody's machine."""
    content = declaration.model_dump(exclude_unset=True)
    content["experiment"].pop("import_paths", None)
    return Declaration.model_validate(content | {"command": without_out(declaration.command)})


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
    # through JSON, in which the loss of a network that has diverged is "NaN": Python would write a bare NaN
    record: dict[str, Any] = json.loads(result.model_dump_json(exclude=None if curves else {"curve"}))
    if record.get("machine"):
        record["machine"]["command"] = without_out(record["machine"]["command"])
    kept = {"config": record.pop("config")}  # settings are exact
    return kept | {"curve": []} | {key: rounded(value) for key, value in record.items()}


def without_out(command: str) -> str:
    """A command without the folder of its results, which is a path of somebody's machine and has no effect on them.

    >>> without_out("bgd run digits --out /home/me/runs --row 'K = 2, capped'")
    "bgd run digits --row 'K = 2, capped'"
    """
    parts = shlex.split(command)
    kept = [
        part
        for before, part in zip(["", *parts], parts, strict=False)
        if "--out" not in (before, part) and not part.startswith("--out=")
    ]
    return command if kept == parts else shlex.join(kept)


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
