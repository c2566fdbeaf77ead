"""The folder of a comparison: its declaration, and a folder for each of its runs.

experiment.json     the declaration (with the user's own changes), the preset, and the command that made it
<run>/              see bgd.runs.folder
remarks.md          what people make of the results, if they wrote it down: reports show it
runs.jsonl          finished runs in short, where a comparison was packed: see bgd.experiments.pack
failed.jsonl        beside it, those that failed
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from bgd.experiments.declaration import Experiment
from bgd.experiments.plan import resolve, run_folder
from bgd.files import write_atomically
from bgd.runs.config import RunConfig, Strict
from bgd.runs.errors import RunError
from bgd.runs.folder import clear_errors, finished, prepare, read_config, read_result
from bgd.runs.result import RunResult

FILE, PACKED, FAILED, REMARKS = "experiment.json", "runs.jsonl", "failed.jsonl", "remarks.md"

Kind = TypeVar("Kind", bound=Strict)
RunKey = tuple[str, str, int]


class Declaration(Strict):
    """What a comparison compares, as written to its folder."""

    experiment: Experiment
    preset: str
    changes: tuple[str, ...] = Field(default=(), description="the user's own values, key=value")
    command: str = ""


class FailedRun(Strict):
    """A run that failed, in short."""

    config: RunConfig
    why: str = Field(default="", description="the last line of the error")


@dataclass(frozen=True)
class StoredComparison:
    """All that a folder holds of a comparison, read.

    Attributes:
        folder: of the comparison.
        declaration: what is compared.
        results: of finished runs, in the order of the declaration's columns, rows and seeds.
        unfinished: folders of runs that wait, were interrupted, or failed.
        failed: of these, the folders with a traceback.
        outdated: folders of runs that are not (or no longer) what the declaration says, or that another run of the same
            row, column and seed has followed (on another device); left out of the results.
        damaged: folders of finished runs whose result cannot be read, with the reason.
        lost: runs that had failed when the comparison was packed, and have not been done since.
        remarks: what people make of the results, in Markdown.
    """

    folder: Path
    declaration: Declaration
    results: list[RunResult] = field(default_factory=list)
    unfinished: list[Path] = field(default_factory=list)
    failed: list[Path] = field(default_factory=list)
    outdated: list[Path] = field(default_factory=list)
    damaged: dict[Path, str] = field(default_factory=dict)
    lost: list[FailedRun] = field(default_factory=list)
    remarks: str = ""


def declare(folder: Path, declaration: Declaration, configs: list[RunConfig]) -> list[Path]:
    """Write a comparison down before it begins, with a folder for each of its runs; returns these."""
    with clear_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_declaration(folder, declaration)
    folders = [run_folder(folder, config) for config in configs]
    for path, config in zip(folders, configs, strict=True):
        prepare(path, config)
    return folders


def write_declaration(folder: Path, declaration: Declaration) -> None:
    """Write a declaration to its folder."""
    # what is unset stays out: it would be read as set, and no longer show what lies below
    content = declaration.model_dump_json(indent=1, exclude_unset=True).encode() + b"\n"
    write_atomically(folder / FILE, content)


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
        raise RunError(f"{folder / FILE}: not a declaration of this version: {error.errors()[0]['msg']}") from error


def collect(folder: str | Path) -> StoredComparison:
    """Read a comparison from its folder, whatever state its runs are in."""
    folder = Path(folder)
    declaration = read_declaration(folder)
    remarks = folder / REMARKS
    comparison = StoredComparison(folder, declaration, remarks=remarks.read_text().strip() if remarks.is_file() else "")
    done: list[tuple[Path, RunResult]] = []
    waiting: dict[Path, str] = {}
    for path in sorted(run_folders(folder)):
        config = read_config(path)
        if not declared(declaration, config):
            comparison.outdated.append(path)
        elif finished(path):
            try:
                done.append((path, read_result(path)))
            except RunError as error:  # one damaged file is no reason to show nothing of the others
                comparison.damaged[path] = str(error)
        else:
            waiting[path] = config.digest
    there = {result.config.digest for _, result in done}
    for result in read_packed(folder):
        if not declared(declaration, result.config):
            comparison.outdated.append(folder / PACKED)
        elif result.config.digest not in there:
            done.append((folder / PACKED, result))
    newest: dict[RunKey, tuple[Path, RunResult]] = {}
    for path, result in sorted(done, key=lambda one: one[1].machine.finished if one[1].machine else ""):
        if before := newest.get(key := run_key(result.config)):
            comparison.outdated.append(before[0])
        newest[key] = (path, result)
    comparison.results.extend(in_order(declaration.experiment, (result for _, result in newest.values())))
    have = {result.config.digest for result in comparison.results}
    comparison.unfinished.extend(path for path, digest in waiting.items() if digest not in have)
    comparison.failed.extend(path for path in comparison.unfinished if (path / "failure.txt").exists())
    have |= set(waiting.values())
    lost = (one for one in read_lines(folder / FAILED, FailedRun) if declared(declaration, one.config))
    comparison.lost.extend(one for one in lost if one.config.digest not in have)
    comparison.outdated[:] = list(dict.fromkeys(comparison.outdated))
    return comparison


def run_key(config: RunConfig) -> RunKey:
    """Where a run stands in its comparison: row, column and seed."""
    return config.row, config.column, config.seed


def in_order(experiment: Experiment, results: Iterable[RunResult]) -> list[RunResult]:
    """By the declaration's columns and rows, then by seed."""
    rows, columns = list(experiment.rows), list(experiment.columns)
    return sorted(results, key=lambda r: (columns.index(r.config.column), rows.index(r.config.row), r.config.seed))


def read_packed(folder: Path) -> list[RunResult]:
    """The runs of ``runs.jsonl``; none where there is no such file.

    >>> read_packed(Path("no-such-folder"))
    []
    """
    return read_lines(folder / PACKED, RunResult)


def read_lines(path: Path, kind: type[Kind]) -> list[Kind]:
    """What a file holds, a line for each; nothing where there is no such file."""
    if not path.is_file():
        return []
    records = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            records.append(kind.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            raise RunError(f"{path}, line {number}: not a run of this version: {where}: {first['msg']}") from error
    return records


def declared(declaration: Declaration, config: RunConfig) -> bool:
    """Whether a run is what the declaration says of its row, column and seed."""
    experiment = declaration.experiment
    if config.row not in experiment.rows or config.column not in experiment.columns:
        return False
    expected = resolve(experiment, declaration.preset, config.row, config.column, config.seed, config.device)
    return expected.digest == config.digest


def run_folders(folder: Path) -> list[Path]:
    """Every folder of a run in or below a folder.

    >>> run_folders(Path("no-such-folder"))
    []
    """
    return [path.parent for path in folder.rglob("config.json")]
