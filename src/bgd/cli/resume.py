"""``bgd resume``: go on with whatever is not finished."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bgd.cli.execute import ExecutorChoice, In, Jobs, Json, Keep, Quiet, RayAddress, RunOptions, execute, ready
from bgd.experiments.storage import FILE, collect, run_folders
from bgd.runs.environment import results_folder
from bgd.runs.errors import RunError
from bgd.runs.executors import Job
from bgd.runs.folder import finished, read_config, read_machine
from bgd.runs.options import Options
from bgd.runs.result import Machine


def resume(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            help="Of a comparison or a single run; by default the comparison worked on last.",
            show_default=False,
        ),
    ] = None,
    jobs: Jobs = 0,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="Threads of torch in each run; by default as many as it began with.", show_default=False
        ),
    ] = None,
    executor: In = ExecutorChoice.AUTO,
    ray_address: RayAddress = None,
    keep: Keep = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Go on with the runs of a comparison that wait, were interrupted or failed, each from its last checkpoint.

    A run that was interrupted and resumed ends with the same result, bit for bit, as one that never was.
    """
    chosen = [folder.expanduser() for folder in folders] if folders else [latest(results_folder())]
    paths = [path for folder in chosen for path in sorted(run_folders(folder))]
    if not paths:
        raise RunError(f"no run in {', '.join(map(str, chosen))}: start one with bgd run, or name its folder")
    comparisons = {path.parent for path in paths if (path.parent / FILE).exists()}
    # no report would show what an older declaration asked for
    outdated = {path for folder in comparisons for path in collect(folder).outdated} - set(chosen)
    waiting = {path: began(path) for path in paths if not finished(path) and path not in outdated}
    options = {
        path: Options(threads=threads or machine.threads, keep=keep or machine.keep)
        for path, machine in waiting.items()
    }
    most = max((own.threads for own in options.values()), default=1)
    how = RunOptions(jobs, most, executor, keep, quiet, as_json, ray_address)
    todo = [Job(read_config(path), path, own, tuple(waiting[path].import_paths)) for path, own in options.items()]
    if not todo and not quiet and not as_json:
        Console(stderr=True).print("nothing to resume: every run is finished", style="dim")
    ready(todo)
    execute(todo, how, sorted(comparisons))


def began(run: Path) -> Machine:
    """How a run began: its threads, and whether to keep its network; one that has not begun goes with its comparison.

    >>> began(Path("no-such-run")).threads
    1
    """
    machines = (read_machine(path) for path in (run, *sorted(run.parent.glob("*/"))))
    return next((machine for machine in machines if machine), Machine())


def latest(root: Path) -> Path:
    """The comparison in which something was written last, among those with a run that is not finished.

    >>> latest(Path("no-such-folder"))
    Traceback (most recent call last):
    bgd.runs.errors.RunError: nothing to resume in no-such-folder: name the folder of a comparison or run
    """
    paths = run_folders(root)
    outdated = {
        old for folder in {p.parent for p in paths} if (folder / FILE).exists() for old in collect(folder).outdated
    }
    waiting = [path for path in paths if not finished(path) and path not in outdated]
    if not waiting:
        raise RunError(f"nothing to resume in {root}: name the folder of a comparison or run")
    return max(waiting, key=lambda path: max(file.stat().st_mtime for file in path.iterdir())).parent
