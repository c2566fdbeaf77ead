"""From folders of runs to comparisons: whatever state the runs are in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from bgd.errors import BGDError
from bgd.experiments import EXPERIMENTS
from bgd.experiments.storage import FILE, StoredComparison, read_comparison, run_folders
from bgd.report.summary import Comparison, Unfinished, compare
from bgd.runs.folder import finished, last_line, read_config, read_result
from bgd.runs.result import RunResult


class ReportError(BGDError):
    """Results that cannot be shown as asked: the message names the folder and the way out.

    >>> issubclass(ReportError, BGDError)
    True
    """


def paths(folders: str | Path | Iterable[str | Path]) -> list[Path]:
    """One folder, or several, as paths.

    >>> [path.name for path in paths("results")], [path.name for path in paths(["results", Path("more")])]
    (['results'], ['results', 'more'])
    """
    return [Path(folder) for folder in ([folders] if isinstance(folders, str | Path) else folders)]


def load(folders: str | Path | Iterable[str | Path]) -> list[Comparison]:
    """The comparisons in or below a folder or several, built-in experiments first, in the order of ``bgd list``.

    A folder may hold one comparison (as ``bgd run`` makes it), many, or single runs without a declaration.

    Raises:
        ReportError: where there are no runs.

    >>> load("no-such-folder")
    Traceback (most recent call last):
    bgd.report.load.ReportError: no-such-folder: no such folder: name the folder of a comparison, see bgd run
    """
    found: dict[Path, Comparison] = {}
    for folder in paths(folders):
        if not folder.is_dir():
            raise ReportError(f"{folder}: no such folder: name the folder of a comparison, see bgd run")
        declared = sorted(path.parent for path in folder.rglob(FILE))
        for one in declared:
            found.setdefault(one.resolve(), comparison(read_comparison(one)))
        loose = [run for run in run_folders(folder) if not any(one in run.parents for one in declared)]
        if loose:
            found.setdefault(folder.resolve(), _loose(folder, sorted(loose)))
        if not declared and not loose:
            raise ReportError(f"{folder}: no runs in here: name the folder of a comparison, see bgd run")
    known = list(EXPERIMENTS)
    return sorted(
        found.values(), key=lambda c: (known.index(c.name) if c.name in known else len(known), c.name, c.preset)
    )


def comparison(content: StoredComparison) -> Comparison:
    """What a folder holds of a declared comparison, with the runs that are missing and the user's own changes."""
    declaration = content.declaration
    made = compare(
        content.results,
        declaration.experiment,
        [_unfinished(path) for path in content.unfinished]
        + [Unfinished(one.config, "failed", one.error) for one in content.packed_failures]
        + [Unfinished(read_config(path), "failed", why) for path, why in content.damaged.items()],
        preset=declaration.preset,
        changes=declaration.overrides,
    )
    return replace(made, remarks=content.remarks, outdated=len(content.outdated))


def _loose(folder: Path, runs: Sequence[Path]) -> Comparison:
    """Runs without a declaration: those of one experiment can still be told by their own configuration."""
    results = [read_result(path) for path in runs if finished(path)]
    unfinished = [_unfinished(path) for path in runs if not finished(path)]
    configs = [run.config for run in results] + [one.config for one in unfinished]
    kinds = sorted({(config.experiment, config.preset) for config in configs})
    if len(kinds) > 1:
        names = ", ".join(" ".join(kind).strip() or "unnamed" for kind in kinds)
        raise ReportError(f"{folder}: runs of several experiments ({names}) without {FILE}: name them one by one")
    _check_alike(folder, results)
    return compare(results, EXPERIMENTS.get(kinds[0][0]), unfinished)


def _check_alike(folder: Path, results: Iterable[RunResult]) -> None:
    """Only runs that differ in nothing but their seed may be averaged."""
    first: dict[tuple[str, str], RunResult] = {}
    for run in results:
        config = run.config
        other = first.setdefault((config.row or config.method, config.column), run).config
        if config.model_copy(update={"seed": other.seed}) != other:
            raise ReportError(
                f"{folder}: {config.title} and {other.title} have different settings, and cannot be averaged: "
                "keep them in folders of their own"
            )


def _unfinished(folder: Path) -> Unfinished:
    why = last_line(folder)
    return Unfinished(read_config(folder), "failed" if why else "not finished", why)
