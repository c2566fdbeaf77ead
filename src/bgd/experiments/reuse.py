"""The same work is done once: a run that another comparison has finished is taken over, under its new name.

Tables share cells: class learning without the labels trick stands in two of them, BGD with K = 10 in three. Labels
(experiment, preset, row, column) decide nothing about a run; everything else must be equal. Packed results count as
well: with them in its place, a comparison goes on where another machine left it.
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


def work(config: RunConfig, defaults: Mapping[str, Any] | None = None) -> str:
    """What decides the numbers of a run, with every setting that was left to its default; labels are no part of it.

    ``defaults`` are the method's of today, unless those of the day of the run are given.

    >>> one = RunConfig(method="sgd", row="SGD", settings={"lr": 0.01})
    >>> work(one) == work(RunConfig(method="sgd", experiment="another")) != work(one.model_copy(update={"seed": 1}))
    True
    """
    everything: dict[str, Any] = config.model_dump(mode="json", exclude=set(LABELS))
    everything["settings"] = {**(settings_of(config.method) if defaults is None else defaults), **config.settings}
    return json.dumps(everything, sort_keys=True)


class ReusableRun(NamedTuple):
    """A finished run that has done the work of a planned one: where it lies, and its result."""

    place: Path
    result: RunResult


def find_reusable(
    planned: Mapping[Path, RunConfig], experiment: Experiment, others: Path, threads: int
) -> dict[Path, ReusableRun]:
    """Planned runs of an experiment, by their folders, whose work is done in a run below ``others``.

    Only results of runs with as many threads, the same versions of this package and of torch, and the same arrays
    where these are the user's own count, since their bits differ otherwise, and whose method's file is as it was then,
    where that is known. A setting that a run left to its default is what it was on the day of the run. What cannot be
    read is passed over, as is a packed run whose training losses were left out where they are to be shown.
    """
    wanted = {work(config): path for path, config in planned.items() if not finished(path)}
    found: dict[Path, ReusableRun] = {}
    for place, done, result in _done_below(others, wanted) if wanted else ():
        path = wanted[done]
        here = describe(threads, data_digest(planned[path].setup.data), code_digest(planned[path]))
        if path in found or result.machine is None or not _alike(result.machine, here):
            continue
        if result.curve or not shows_curves(experiment):
            found[path] = ReusableRun(place, result)
    return found


def reuse_results(planned: Mapping[Path, RunConfig], found: Mapping[Path, ReusableRun]) -> None:
    """Finish planned runs with the results that were found; the machine's record, with its time, comes along."""
    for path, (place, result) in found.items():
        target, config = RunFolder(path), planned[path]
        with target.opened(config):
            if (lines := place / "metrics.jsonl").is_file():  # a packed run has none
                (path / "metrics.jsonl").write_bytes(lines.read_bytes())
            assert result.machine is not None
            target.finish(result.model_copy(update={"config": config}), result.machine)


def _done_below(others: Path, wanted: Container[str]) -> Iterator[tuple[Path, str, RunResult]]:
    """Finished work that is wanted: whole runs with their folders, then packed ones with the file that holds them."""
    for folder in sorted(run_folders(others)):
        with suppress(BGDError):
            if not finished(folder) or not (machine := read_machine(folder)):
                continue
            if (done := work(read_config(folder), machine.settings)) in wanted:
                yield folder, done, read_result(folder)
    for file in sorted(others.rglob(PACKED)):
        with suppress(BGDError):
            for result in read_packed(file.parent):
                if result.machine and (done := work(result.config, result.machine.settings)) in wanted:
                    yield file, done, result


def _alike(one: Machine, other: Machine) -> bool:
    # "threads" is among the versions of a run that was resumed with other threads, and whose bits are like no other's
    kinds = ("bgd", "torch", "data", "threads")
    versions = [[machine.versions.get(what) for what in kinds] for machine in (one, other)]
    codes = {machine.versions["code"] for machine in (one, other) if "code" in machine.versions}
    return one.threads == other.threads and versions[0] == versions[1] and len(codes) < 2
