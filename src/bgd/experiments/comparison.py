"""The folder of a comparison: its declaration, and a folder for each of its runs.

experiment.json     the declaration (with the user's own changes), the preset, and the command that made it
<run>/              see bgd.runs.folder
remarks.md          what people make of the results, if they wrote it down: reports show it
runs.jsonl          finished runs in short, where a comparison was packed: see bgd.experiments.pack
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, ValidationError

from bgd.experiments.plan import resolve, run_folder
from bgd.experiments.types import Experiment
from bgd.runs.folder import clear_errors, finished, prepare, read_config, read_result, write_atomically
from bgd.runs.types import RunConfig, RunError, RunResult, Strict

FILE, PACKED, REMARKS = "experiment.json", "runs.jsonl", "remarks.md"


class Declaration(Strict):
    """What a comparison compares, as written to its folder."""

    experiment: Experiment
    preset: str
    changes: tuple[str, ...] = Field(default=(), description="the user's own values, key=value")
    command: str = ""


@dataclass(frozen=True)
class Collected:
    """All that a folder holds of a comparison, read.

    Attributes:
        folder: of the comparison.
        declaration: what is compared.
        results: of finished runs, in the order of the declaration's columns, rows and seeds.
        unfinished: folders of runs that wait, were interrupted, or failed.
        failed: of these, the folders with a traceback.
        outdated: folders of runs that are not (or no longer) what the declaration says; left out of the results.
        remarks: what people make of the results, in Markdown.
    """

    folder: Path
    declaration: Declaration
    results: list[RunResult] = field(default_factory=list)
    unfinished: list[Path] = field(default_factory=list)
    failed: list[Path] = field(default_factory=list)
    outdated: list[Path] = field(default_factory=list)
    remarks: str = ""


def declare(folder: Path, declaration: Declaration, configs: list[RunConfig]) -> list[Path]:
    """Write a comparison down before it begins, with a folder for each of its runs; returns these."""
    with clear_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # what is unset stays out: it would be read as set, and no longer show what lies below
        content = declaration.model_dump_json(indent=1, exclude_unset=True).encode() + b"\n"
        write_atomically(folder / FILE, content)
    folders = [run_folder(folder, config) for config in configs]
    for path, config in zip(folders, configs, strict=True):
        prepare(path, config)
    return folders


def read_declaration(folder: Path) -> Declaration:
    """The declaration of a comparison.

    >>> read_declaration(Path("no-such-folder"))
    Traceback (most recent call last):
    bgd.runs.types.RunError: no-such-folder holds no comparison (there is no experiment.json): see bgd run
    """
    try:
        return Declaration.model_validate_json((folder / FILE).read_bytes())
    except FileNotFoundError:
        raise RunError(f"{folder} holds no comparison (there is no {FILE}): see bgd run") from None
    except ValidationError as error:
        raise RunError(f"{folder / FILE}: not a declaration of this version: {error.errors()[0]['msg']}") from error


def collect(folder: str | Path) -> Collected:
    """Read a comparison from its folder, whatever state its runs are in."""
    folder = Path(folder)
    declaration = read_declaration(folder)
    remarks = folder / REMARKS
    comparison = Collected(folder, declaration, remarks=remarks.read_text().strip() if remarks.is_file() else "")
    experiment = declaration.experiment
    rows, columns = list(experiment.methods), list(experiment.columns)
    for path in sorted(run_folders(folder)):
        config = read_config(path)
        if not _declared(declaration, config):
            comparison.outdated.append(path)
        elif finished(path):
            comparison.results.append(read_result(path))
        else:
            comparison.unfinished.append(path)
            if (path / "failure.txt").exists():
                comparison.failed.append(path)
    there = {result.config.digest for result in comparison.results}
    packed = [result for result in read_packed(folder) if result.config.digest not in there]
    comparison.results.extend(result for result in packed if _declared(declaration, result.config))
    if len(there) + len(packed) > len(comparison.results):
        comparison.outdated.append(folder / PACKED)
    comparison.results.sort(key=lambda r: (columns.index(r.config.column), rows.index(r.config.row), r.config.seed))
    return comparison


def read_packed(folder: Path) -> list[RunResult]:
    """The runs of ``runs.jsonl``; none where there is no such file.

    >>> read_packed(Path("no-such-folder"))
    []
    """
    path = folder / PACKED
    if not path.is_file():
        return []
    results = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            results.append(RunResult.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            raise RunError(f"{path}, line {number}: not a run of this version: {where}: {first['msg']}") from error
    return results


def _declared(declaration: Declaration, config: RunConfig) -> bool:
    experiment = declaration.experiment
    if config.row not in experiment.methods or config.column not in experiment.columns:
        return False
    expected = resolve(experiment, declaration.preset, config.row, config.column, config.seed, config.device)
    return expected.digest == config.digest


def run_folders(folder: Path) -> list[Path]:
    """Every folder of a run in or below a folder.

    >>> run_folders(Path("no-such-folder"))
    []
    """
    return [path.parent for path in folder.rglob("config.json")]
