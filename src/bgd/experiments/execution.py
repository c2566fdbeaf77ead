"""Run what is planned, or resume it: the same for the command and for Python.

``prepare`` turns a plan into jobs, ``prepare_resume`` does so for folders of interrupted runs, ``execute`` runs them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from bgd.errors import SettingError
from bgd.experiments.folders import comparison_folder, run_folder
from bgd.experiments.plan import Plan
from bgd.experiments.progress import make_display
from bgd.experiments.reuse import find_reusable, is_by_other_code, reuse_results
from bgd.experiments.storage import FILE, Declaration, declare, read_comparison, read_declaration, run_folders
from bgd.plugins import import_paths
from bgd.runs.compatibility import check_compatible
from bgd.runs.config import RunConfig
from bgd.runs.digests import check_digests
from bgd.runs.environment import available_cores, results_folder
from bgd.runs.errors import RunError
from bgd.runs.executors import Executor, Job, OnRay, Outcome, Processes, in_this_process
from bgd.runs.folder import RunFolder, finished, read_config, read_machine
from bgd.runs.options import Options
from bgd.runs.own_modules import check_importable
from bgd.runs.result import Machine
from bgd.runs.validation import prepare_data
from bgd.validation import check_choice, check_whole


class ExecutorName(StrEnum):
    """Where runs are computed: ``serial`` is one after the other in this process."""

    AUTO = "auto"
    SERIAL = "serial"
    PROCESSES = "processes"
    RAY = "ray"


@dataclass(frozen=True)
class ExecutionOptions:
    """How runs are computed, which has no effect on their results.

    Args:
        jobs: runs at a time, each in its own process; 0: one for each core (on Ray, of the cluster).
        threads: of torch in each run. Results are the same bits for the same number.
        executor: a value of :class:`ExecutorName`; ``auto`` is ``serial`` for one job, else ``processes``.
        ray_address: of a running Ray cluster; implies ``ray``.
        keep: keep each run's last checkpoint, with the trained network.

    >>> ExecutionOptions(executor="procesess")
    Traceback (most recent call last):
    bgd.errors.SettingError: executor='procesess': choose one of auto, serial, processes, ray
    """

    jobs: int = 0
    threads: int = 1
    executor: str = ExecutorName.AUTO
    ray_address: str | None = None
    keep: bool = False

    def __post_init__(self) -> None:
        """Refuse values that are wrong or contradict each other."""
        check_choice("executor", self.executor, [str(name) for name in ExecutorName])
        check_whole(0, jobs=self.jobs)
        check_whole(1, threads=self.threads)
        if self.ray_address and self.executor not in (ExecutorName.AUTO, ExecutorName.RAY):
            raise SettingError(f"--ray-address (ray_address) needs the executor ray, not {self.executor}")

    def executor_for(self, runs: int) -> Executor:
        """The executor for so many runs.

        >>> ExecutionOptions(jobs=1).executor_for(8).__name__
        'in_this_process'
        """
        if self.executor == ExecutorName.RAY or self.ray_address:
            return OnRay(self.jobs, self.ray_address)
        count = min(self.jobs or max(1, available_cores() // self.threads), max(runs, 1))
        if self.executor == ExecutorName.SERIAL or (self.executor == ExecutorName.AUTO and count == 1):
            return in_this_process
        return Processes(count)


@dataclass(frozen=True)
class PreparedRuns:
    """Runs whose folders and data are ready.

    Attributes:
        comparisons: the folders of the comparisons that the jobs belong to.
        jobs: all of them, also those that are finished.
        reused: folders of jobs with the result of another comparison, each with the source of the result.
        import_paths: where the modules of own methods, networks and data are.
    """

    comparisons: tuple[Path, ...]
    jobs: tuple[Job, ...]
    reused: Mapping[Path, Path] = field(default_factory=dict)
    import_paths: tuple[str, ...] = ()

    @property
    def todo(self) -> list[Job]:
        """The jobs without a result."""
        return [job for job in self.jobs if not finished(job.folder)]


@dataclass(frozen=True)
class Execution:
    """What happened when jobs were executed.

    Attributes:
        prepared: what was to be run.
        before: jobs that were finished already.
        outcomes: of the others, in the order in which they ended.
    """

    prepared: PreparedRuns
    before: tuple[Job, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def failed(self) -> list[Outcome]:
        """Runs that ended with an error."""
        return [outcome for outcome in self.outcomes if outcome.error and not outcome.interrupted]

    @property
    def by_other_code(self) -> list[Job]:
        """Finished runs by code that has changed since they began: those of before, and those resumed by new code."""
        done = (job for job in self.prepared.jobs if finished(job.folder))
        with import_paths(self.prepared.import_paths):
            return [job for job in done if is_by_other_code(job.config, job.folder)]

    @property
    def interrupted(self) -> int:
        """How many runs are left because of an interruption."""
        done = len(self.before) + len(self.prepared.reused)
        done += sum(outcome.result is not None for outcome in self.outcomes)
        return len(self.prepared.jobs) - done - len(self.failed)


def prepare(
    plan: Plan,
    options: ExecutionOptions,
    out: Path | None = None,
    *,
    reuse: bool = True,
    rerun: bool = False,
    command: str = "",
) -> PreparedRuns:
    """Write the declaration of a plan and the folders of its runs, with the results that can be reused.

    Nothing is written before the data is known to be complete and to fit the networks.

    Args:
        plan: validated.
        options: how to run.
        out: the folder for results; by default that of ``BGD_RUNS``, see :func:`results_folder`.
        reuse: copy results that another comparison in ``out`` has, labels aside.
        rerun: run everything again: earlier results of these runs are removed.
        command: recorded with the declaration.

    Raises:
        BGDError: for data that is missing or wrong; nothing has been started.
    """
    results = (out or results_folder()).expanduser()
    folder = comparison_folder(results, plan.experiment, plan.preset, plan.overrides)
    planned = {run_folder(folder, config): config for config in plan.configs}
    _check_importable(plan.configs, options)
    with import_paths(plan.experiment.import_paths):
        reuse = reuse and not rerun and not options.keep  # a reused result has no network to keep
        found = find_reusable(planned, plan.experiment, results, options.threads) if reuse else {}
        paths = (*plan.experiment.import_paths, os.getcwd())
        jobs = [
            Job(config, path, Options(threads=options.threads, keep=options.keep), paths)
            for path, config in planned.items()
        ]
        # before the declaration of a wrong experiment replaces that of a right one
        _check_data([job for job in jobs if job.folder not in found], rerun)
    if rerun:
        for path, config in planned.items():
            with RunFolder(path).opened(config) as old:
                old.clear()
    declaration = Declaration(experiment=plan.experiment, preset=plan.preset, overrides=plan.overrides, command=command)
    declare(folder, declaration, plan.configs)
    reuse_results(planned, found)
    return PreparedRuns((folder,), tuple(jobs), {path: one.source for path, one in found.items()}, paths)


def prepare_resume(folders: Sequence[Path] = (), *, threads: int | None = None, keep: bool = False) -> PreparedRuns:
    """The unfinished runs of comparisons, or single runs, each with the threads it started with.

    Args:
        folders: of comparisons or runs; by default the comparison with the latest unfinished run.
        threads: of torch in each run, instead.
        keep: keep each run's last checkpoint, also where that was not requested at first.

    Raises:
        RunError: where there are no runs.
    """
    chosen = [folder.expanduser() for folder in folders] or [latest_unfinished(results_folder())]
    paths = [path for folder in chosen for path in sorted(run_folders(folder))]
    if not paths:
        raise RunError(f"no run in {', '.join(map(str, chosen))}: start one with bgd run, or name its folder")
    comparisons = sorted({path.parent for path in paths if (path.parent / FILE).exists()})
    # no report would show what an older declaration described
    outdated = {path for folder in comparisons for path in read_comparison(folder).outdated} - set(chosen)
    modules = {folder: read_declaration(folder).experiment.import_paths for folder in comparisons}
    jobs = []
    for path in paths:
        if finished(path):
            check_digests(path)
        elif path not in outdated:
            machine = recorded_machine(path)
            options = Options(threads=threads or machine.threads, keep=keep or machine.keep)
            searched = tuple(dict.fromkeys((*modules.get(path.parent, ()), *machine.import_paths, os.getcwd())))
            jobs.append(Job(read_config(path), path, options, searched))
    all_modules = tuple(dict.fromkeys(one for job in jobs for one in job.import_paths))
    with import_paths(all_modules):
        _check_data(jobs)
    return PreparedRuns(tuple(comparisons), tuple(jobs), import_paths=all_modules)


def execute(prepared: PreparedRuns, options: ExecutionOptions, *, quiet: bool = False) -> Execution:
    """Run the jobs that have no result yet, and show their progress.

    SIGINT and SIGTERM end it early: every run saves its state first, and the number of those left is in
    ``interrupted``.
    """
    todo = prepared.todo
    unfinished = {job.folder for job in todo} | set(prepared.reused)
    for job in prepared.jobs:  # what counts as done must be sound
        if job.folder not in unfinished:
            check_digests(job.folder)
    before = tuple(job for job in prepared.jobs if job.folder not in unfinished)
    _check_importable([job.config for job in todo], options)
    outcomes: list[Outcome] = []
    with import_paths(prepared.import_paths), make_display(todo, quiet) as display:
        for outcome in options.executor_for(len(todo))(todo, display.update):
            display.end(outcome)
            outcomes.append(outcome)
    return Execution(prepared, before, tuple(outcomes))


def recorded_machine(run: Path) -> Machine:
    """The threads and options that a run started with; for one that has not started, those of its comparison.

    >>> recorded_machine(Path("no-such-run")).threads
    1
    """
    machines = (read_machine(path) for path in (run, *sorted(run.parent.glob("*/"))))
    return next((machine for machine in machines if machine), Machine())


def latest_unfinished(root: Path) -> Path:
    """The comparison with the unfinished run to which something was written last.

    >>> latest_unfinished(Path("no-such-folder"))
    Traceback (most recent call last):
    bgd.runs.errors.RunError: nothing to resume in no-such-folder: name the folder of a comparison or run
    """
    paths = run_folders(root)
    comparisons = {path.parent for path in paths if (path.parent / FILE).exists()}
    outdated = {old for folder in comparisons for old in read_comparison(folder).outdated}
    waiting = [path for path in paths if not finished(path) and path not in outdated]
    if not waiting:
        raise RunError(f"nothing to resume in {root}: name the folder of a comparison or run")
    return max(waiting, key=lambda path: max(file.stat().st_mtime for file in path.iterdir())).parent


def _check_data(jobs: Iterable[Job], rerun: bool = False) -> None:
    """Fetch the data of jobs without a result, and refuse data or networks that do not fit.

    With ``rerun`` earlier results do not count.
    """
    todo = []
    for job in jobs:
        if not rerun:
            check_compatible(job.config, job.folder)
        if rerun or not finished(job.folder):
            todo.append(job.config)
    prepare_data(todo)


def _check_importable(configs: Sequence[RunConfig], options: ExecutionOptions) -> None:
    """Refuse to send what is defined in a script or notebook to other processes, which cannot import it."""
    if options.executor_for(len(configs)) is not in_this_process:
        check_importable(configs, "another process")
