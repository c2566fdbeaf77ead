"""From folders of runs to comparisons, whatever state the runs are in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from bgd.experiments import EXPERIMENTS
from bgd.experiments.storage import FILE, StoredComparison, read_comparison, run_folders
from bgd.report.files import ReportError
from bgd.report.summary import Comparison, Unfinished, compare
from bgd.report.summary.rows import row_of
from bgd.runs.folder import finished, last_line, read_config, read_result
from bgd.runs.result import RunResult


def to_paths(folders: str | Path | Iterable[str | Path]) -> list[Path]:
    """One folder, or several, as paths.

    >>> [path.name for path in to_paths("results")], [path.name for path in to_paths(["results", Path("more")])]
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
    bgd.report.files.ReportError: no-such-folder: no such folder: name the folder of a comparison, see bgd run
    """
    found: dict[Path, Comparison] = {}
    for folder in to_paths(folders):
        if not folder.is_dir():
            raise ReportError(f"{folder}: no such folder: name the folder of a comparison, see bgd run")
        declared = sorted(path.parent for path in folder.rglob(FILE))
        for one in declared:
            found.setdefault(one.resolve(), compare_stored(read_comparison(one)))
        undeclared = [run for run in run_folders(folder) if not any(one in run.parents for one in declared)]
        if undeclared:
            found.setdefault(folder.resolve(), _compare_undeclared(folder, sorted(undeclared)))
        if not declared and not undeclared:
            raise ReportError(f"{folder}: no runs in here: name the folder of a comparison, see bgd run")
    known = list(EXPERIMENTS)
    return sorted(
        found.values(), key=lambda c: (known.index(c.name) if c.name in known else len(known), c.name, c.preset)
    )


def compare_stored(stored: StoredComparison) -> Comparison:
    """A declared comparison as read from its folder, with the runs that are missing and the user's overrides."""
    declaration = stored.declaration
    comparison = compare(
        stored.results,
        declaration.experiment,
        [_unfinished(path) for path in stored.unfinished]
        + [Unfinished(one.config, "failed", one.error) for one in stored.packed_failures]
        + [Unfinished(read_config(path), "failed", reason) for path, reason in stored.damaged.items()],
        preset=declaration.preset,
        overrides=declaration.overrides,
    )
    return replace(comparison, remarks=stored.remarks, outdated=len(stored.outdated))


def _compare_undeclared(folder: Path, runs: Sequence[Path]) -> Comparison:
    """Runs without a declaration, which must be of one experiment by their own configurations."""
    results = [read_result(path) for path in runs if finished(path)]
    unfinished = [_unfinished(path) for path in runs if not finished(path)]
    configs = [run.config for run in results] + [one.config for one in unfinished]
    kinds = sorted({(config.experiment, config.preset) for config in configs})
    if len(kinds) > 1:
        names = ", ".join(" ".join(kind).strip() or "unnamed" for kind in kinds)
        raise ReportError(f"{folder}: runs of several experiments ({names}) without {FILE}: name them one by one")
    _check_same_settings(folder, results)
    return compare(results, EXPERIMENTS.get(kinds[0][0]), unfinished)


def _check_same_settings(folder: Path, results: Iterable[RunResult]) -> None:
    """Only runs that differ in nothing but their seed may be averaged."""
    first: dict[tuple[str, str], RunResult] = {}
    for run in results:
        config = run.config
        other = first.setdefault((row_of(config), config.column), run).config
        if config.model_copy(update={"seed": other.seed}) != other:
            raise ReportError(
                f"{folder}: {config.title} and {other.title} have different settings, and cannot be averaged: "
                "keep them in folders of their own"
            )


def _unfinished(folder: Path) -> Unfinished:
    reason = last_line(folder)
    return Unfinished(read_config(folder), "failed" if reason else "not finished", reason)
