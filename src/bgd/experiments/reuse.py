"""Reuse of results: a run that another comparison has finished is copied, under its new labels.

Tables share cells: class learning without the labels trick is in two of them, BGD with K = 10 in three. Labels
(experiment, preset, row, column) have no effect on a run; everything else must be equal. Packed results count as well:
with a copy of them in the results folder, a comparison continues where another machine stopped.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bgd.errors import BGDError
from bgd.experiments.declaration import Experiment
from bgd.experiments.pack import shows_curves
from bgd.experiments.storage import PACKED, read_packed, run_folders
from bgd.methods import settings_of
from bgd.runs.code import code_digest
from bgd.runs.config import RunConfig
from bgd.runs.data import data_digest
from bgd.runs.environment import describe
from bgd.runs.folder import RunFolder, finished, read_config, read_machine, read_result
from bgd.runs.result import Machine, RunResult

LABELS = ("experiment", "preset", "row", "column")


def computation(config: RunConfig, defaults: Mapping[str, Any] | None = None) -> str:
    """What determines the numbers of a run, with every setting that was left at its default; labels do not.

    ``defaults`` are the method's own of today, unless those of the time of the run are given.

    >>> one = RunConfig(method="sgd", row="SGD", settings={"lr": 0.01})
    >>> same, other = RunConfig(method="sgd", experiment="another"), one.model_copy(update={"seed": 1})
    >>> computation(one) == computation(same) != computation(other)
    True
    """
    everything: dict[str, Any] = config.model_dump(mode="json", exclude=set(LABELS))
    everything["settings"] = {**(settings_of(config.method) if defaults is None else defaults), **config.settings}
    return json.dumps(everything, sort_keys=True)


class ReusableRun(NamedTuple):
    """A finished run that has computed what a planned one would: where it is, and its result."""

    source: Path
    result: RunResult


def find_reusable(
    planned: Mapping[Path, RunConfig], experiment: Experiment, others: Path, threads: int
) -> dict[Path, ReusableRun]:
    """Planned runs of an experiment, by their folders, for which a run below ``others`` has the result.

    Results count only if their bits are the same: from runs with as many threads, the same versions of this package and
    of torch, the same arrays where these are the user's own, and unchanged code. A setting that a run left at its
    default has the value of the time of the run. Files that cannot be read are skipped, as are packed runs without
    training losses where these are to be shown.
    """
    wanted = {computation(config): path for path, config in planned.items() if not finished(path)}
    found: dict[Path, ReusableRun] = {}
    for source, done, result in _finished_below(others, wanted) if wanted else ():
        path = wanted[done]
        ours = describe(threads, data_digest(planned[path].setup.data), code_digest(planned[path]))
        if path in found or result.machine is None or not _same_bits(result.machine, ours):
            continue
        if result.curve or not shows_curves(experiment):
            found[path] = ReusableRun(source, result)
    return found


def reuse_results(planned: Mapping[Path, RunConfig], found: Mapping[Path, ReusableRun]) -> None:
    """Finish planned runs with the results that were found, including the record of their machine and time."""
    for path, (source, result) in found.items():
        target, config = RunFolder(path), planned[path]
        with target.opened(config):
            if (lines := source / "metrics.jsonl").is_file():  # a packed run has none
                (path / "metrics.jsonl").write_bytes(lines.read_bytes())
            assert result.machine is not None
            target.finish(result.model_copy(update={"config": config}), result.machine)


def is_by_other_code(config: RunConfig, folder: Path) -> bool:
    """Whether the code of a run has changed since it was made; False where that was not recorded.

    >>> is_by_other_code(RunConfig(method="sgd"), Path("no-such-run"))
    False
    """
    machine, now = read_machine(folder), code_digest(config)
    return machine is not None and machine.versions.get("code", now) != now


def _finished_below(others: Path, wanted: Container[str]) -> Iterator[tuple[Path, str, RunResult]]:
    """Wanted results: those of whole runs with their folders, then packed ones with the file that holds them."""
    for folder in sorted(run_folders(others)):
        with suppress(BGDError):
            if not finished(folder) or not (machine := read_machine(folder)):
                continue
            if (done := computation(read_config(folder), machine.settings)) in wanted:
                yield folder, done, read_result(folder)
    for file in sorted(others.rglob(PACKED)):
        with suppress(BGDError):
            for result in read_packed(file.parent):
                if result.machine and (done := computation(result.config, result.machine.settings)) in wanted:
                    yield file, done, result


def _same_bits(one: Machine, other: Machine) -> bool:
    # "threads" is among the versions of a run that was resumed with another number of threads: its bits are unique
    kinds = ("bgd", "torch", "data", "threads")
    versions = [[machine.versions.get(kind) for kind in kinds] for machine in (one, other)]
    codes = {machine.versions["code"] for machine in (one, other) if "code" in machine.versions}
    return one.threads == other.threads and versions[0] == versions[1] and len(codes) < 2
