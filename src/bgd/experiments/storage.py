"""The folder of a comparison: its declaration, and a folder for each of its runs.

experiment.json     the declaration, the preset, the overrides, and the command that made it
<run>/              see bgd.runs.folder
remarks.md          what people conclude from the results, if they wrote it down: reports show it
runs.jsonl          finished runs in short, where a comparison was packed: see bgd.experiments.pack
failed.jsonl        beside it, those that failed
SHA256SUMS          beside these, their digests: see bgd.runs.digests
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from bgd.experiments.declaration import Experiment, ExperimentError
from bgd.experiments.folders import run_folder
from bgd.experiments.layers import resolve
from bgd.experiments.overrides import Overrides, parse_overrides
from bgd.experiments.selection import RunKey
from bgd.files import write_atomically
from bgd.runs.config import RunConfig, Strict
from bgd.runs.digests import FILE as DIGESTS
from bgd.runs.digests import check_files, replace_files
from bgd.runs.errors import DamagedRun, RunError
from bgd.runs.folder import clear_errors, finished, prepare, read_config, read_result
from bgd.runs.result import RunResult

FILE, PACKED, FAILED, REMARKS = "experiment.json", "runs.jsonl", "failed.jsonl", "remarks.md"
PACKED_FILES = (FILE, PACKED, FAILED)

Record = TypeVar("Record", bound=Strict)


class Declaration(Strict):
    """What a comparison compares, as written to its folder."""

    experiment: Experiment
    preset: str
    overrides: tuple[str, ...] = Field(default=(), description="key=value, over whatever is declared")
    command: str = ""


class FailedRun(Strict):
    """A run that failed, in short."""

    config: RunConfig
    error: str = Field(default="", description="the last line of the traceback")


@dataclass(frozen=True)
class StoredComparison:
    """The content of a comparison's folder.

    Attributes:
        folder: of the comparison.
        declaration: what is compared.
        results: of finished runs, in the order of the declaration's columns, rows and seeds.
        unfinished: folders of runs that wait, were interrupted, or failed.
        failed: those of the unfinished folders that hold a traceback.
        outdated: folders of runs that the declaration does not (or no longer) describe, or that a later run of the same
            row, column and seed replaces (on another device); left out of the results.
        damaged: folders of finished runs whose result cannot be read, with the reason.
        packed_failures: runs that had failed when the comparison was packed, and have not been run since.
        remarks: what people conclude from the results, in Markdown.
    """

    folder: Path
    declaration: Declaration
    results: list[RunResult] = field(default_factory=list)
    unfinished: list[Path] = field(default_factory=list)
    failed: list[Path] = field(default_factory=list)
    outdated: list[Path] = field(default_factory=list)
    damaged: dict[Path, str] = field(default_factory=dict)
    packed_failures: list[FailedRun] = field(default_factory=list)
    remarks: str = ""


class DeclaredRuns:
    """Which configurations a declaration describes.

    >>> from bgd.experiments import find, make_plan
    >>> plan = make_plan(find("digits"), "smoke", rows=["SGD"])
    >>> runs = DeclaredRuns(Declaration(experiment=plan.experiment, preset=plan.preset))
    >>> plan.configs[0] in runs, plan.configs[0].model_copy(update={"settings": {"lr": 9}}) in runs
    (True, False)
    """

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.overrides: Overrides = parse_overrides(declaration.experiment, declaration.overrides)

    def __contains__(self, config: RunConfig) -> bool:
        experiment = self.declaration.experiment
        if config.row not in experiment.rows or config.column not in experiment.columns:
            return False
        preset, key = self.declaration.preset, run_key(config)
        return resolve(experiment, preset, *key, config.device, self.overrides).digest == config.digest


def declare(folder: Path, declaration: Declaration, configs: Sequence[RunConfig]) -> list[Path]:
    """Write the declaration of a comparison and a folder for each of its runs; returns these."""
    with clear_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_declaration(folder, declaration)
    folders = [run_folder(folder, config) for config in configs]
    for path, config in zip(folders, configs, strict=True):
        prepare(path, config)
    return folders


def write_declaration(folder: Path, declaration: Declaration) -> None:
    """Write a declaration to its folder."""
    content = declaration_content(declaration)
    if (folder / PACKED).exists():
        replace_files(folder, {FILE: content}, PACKED_FILES)
    else:
        write_atomically(folder / FILE, content)


def declaration_content(declaration: Declaration) -> bytes:
    r"""The content of a declaration's file.

    >>> from bgd.experiments import find
    >>> declaration_content(Declaration(experiment=find("digits"), preset="smoke"))[-22:]
    b'\n "preset": "smoke"\n}\n'
    """
    # keys that are not set stay out: they would be read as set, and override the layers below
    return declaration.model_dump_json(indent=1, exclude_unset=True).encode() + b"\n"


def read_declaration(folder: Path) -> Declaration:
    """The declaration of a comparison.

    >>> read_declaration(Path("no-such-folder"))
    Traceback (most recent call last):
    bgd.runs.errors.RunError: no-such-folder holds no comparison (there is no experiment.json): see bgd run
    """
    try:
        return Declaration.model_validate_json((folder / FILE).read_bytes())
    except FileNotFoundError:
        raise RunError(f"{folder} holds no comparison (there is no {FILE}): see bgd run") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise DamagedRun(
            f"{folder / FILE}: not a declaration of this version: {where}: {first['msg']}. Restore it, or let bgd run "
            "write it again"
        ) from error
    except OSError as error:
        raise DamagedRun(f"{folder / FILE}: cannot be read ({error.strerror})") from error


def read_comparison(folder: str | Path) -> StoredComparison:
    """Read a comparison from its folder, whatever state its runs are in."""
    folder = Path(folder)
    check_packed(folder)
    declaration = read_declaration(folder)
    remarks = folder / REMARKS
    comparison = StoredComparison(
        folder, declaration, remarks=remarks.read_text(errors="replace").strip() if remarks.is_file() else ""
    )
    try:
        declared = DeclaredRuns(declaration)
    except ExperimentError as error:
        raise DamagedRun(f"{folder / FILE}: {error}") from error
    done, waiting = _read_runs(comparison, declared)
    _read_packed_runs(comparison, declared, done)
    newest: dict[RunKey, tuple[Path, RunResult]] = {}
    for path, result in sorted(done, key=lambda one: one[1].machine.finished if one[1].machine else ""):
        if before := newest.get(key := run_key(result.config)):
            comparison.outdated.append(before[0])
        newest[key] = (path, result)
    comparison.results.extend(in_order(declaration.experiment, (result for _, result in newest.values())))
    known = {result.config.digest for result in comparison.results}
    comparison.unfinished.extend(path for path, digest in waiting.items() if digest not in known)
    comparison.failed.extend(path for path in comparison.unfinished if (path / "failure.txt").exists())
    known |= set(waiting.values())
    failures = (one for one in read_lines(folder / FAILED, FailedRun) if one.config in declared)
    comparison.packed_failures.extend(one for one in failures if one.config.digest not in known)
    comparison.outdated[:] = list(dict.fromkeys(comparison.outdated))
    return comparison


def _read_runs(
    comparison: StoredComparison, declared: DeclaredRuns
) -> tuple[list[tuple[Path, RunResult]], dict[Path, str]]:
    """Results by folder, and the digests of runs without a result; outdated and damaged ones are noted."""
    done: list[tuple[Path, RunResult]] = []
    waiting: dict[Path, str] = {}
    for path in sorted(run_folders(comparison.folder)):
        config = read_config(path)
        if config not in declared:
            comparison.outdated.append(path)
        elif finished(path):
            try:
                done.append((path, read_result(path)))
            except RunError as error:  # one damaged file must not hide the other results
                comparison.damaged[path] = str(error)
        else:
            waiting[path] = config.digest
    return done, waiting


def _read_packed_runs(comparison: StoredComparison, declared: DeclaredRuns, done: list[tuple[Path, RunResult]]) -> None:
    """Add packed results that have no folder of their own."""
    file = comparison.folder / PACKED
    known = {result.config.digest for _, result in done}
    for result in read_packed(comparison.folder):
        if result.config not in declared:
            comparison.outdated.append(file)
        elif result.config.digest not in known:
            done.append((file, result))


def run_key(config: RunConfig) -> RunKey:
    """What identifies a run in its comparison.

    >>> run_key(RunConfig(method="sgd", row="SGD", column="class", seed=3))
    RunKey(row='SGD', column='class', seed=3)
    """
    return RunKey(config.row, config.column, config.seed)


def in_order(experiment: Experiment, results: Iterable[RunResult]) -> list[RunResult]:
    """By the declaration's columns and rows, then by seed."""
    rows, columns = list(experiment.rows), list(experiment.columns)
    return sorted(results, key=lambda r: (columns.index(r.config.column), rows.index(r.config.row), r.config.seed))


def check_packed(folder: Path) -> None:
    """Refuse packed runs, and the declaration beside them, that have changed since they were packed.

    >>> check_packed(Path("no-such-folder"))
    """
    if not (folder / PACKED).is_file():
        return
    there = [name for name in PACKED_FILES if (folder / name).is_file()]
    again = f"(cd {shlex.quote(str(folder))} && sha256sum {' '.join(there)} > {DIGESTS})"
    way_out = f"restore it, or where the files are as they should be: {again}"
    check_files(folder, (PACKED,), PACKED_FILES, "since it was packed", way_out)


def read_packed(folder: Path) -> list[RunResult]:
    """The runs of ``runs.jsonl``; none if there is no such file.

    >>> read_packed(Path("no-such-folder"))
    []
    """
    check_packed(folder)
    return read_lines(folder / PACKED, RunResult)


def read_lines(path: Path, kind: type[Record]) -> list[Record]:
    """The records of a file, one per line; none if there is no such file."""
    if not path.is_file():
        return []
    records = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            records.append(kind.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            raise DamagedRun(
                f"{path}, line {number}: not a run of this version: {where}: {first['msg']}. Restore it, or remove the "
                "line to leave that run out"
            ) from error
    return records


def run_folders(folder: Path) -> list[Path]:
    """Every folder of a run in or below a folder.

    >>> run_folders(Path("no-such-folder"))
    []
    """
    return [path.parent for path in folder.rglob("config.json")]
