"""``bgd resume``: continue whatever is not finished."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bgd.cli.options import Executor, Jobs, Json, Keep, Quiet, RayAddress
from bgd.cli.outcome import finish
from bgd.experiments.execution import ExecutionOptions, ExecutorName, execute, prepare_resume


def resume(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            help="Of a comparison or a single run; by default the comparison with the latest unfinished run.",
            show_default=False,
        ),
    ] = None,
    jobs: Jobs = 0,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="Threads of torch in each run; by default as many as it started with.", show_default=False
        ),
    ] = None,
    executor: Executor = ExecutorName.AUTO,
    ray_address: RayAddress = None,
    keep: Keep = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Continue the runs of a comparison that wait, were interrupted or failed, each from its last checkpoint.

    A run that was interrupted and resumed ends with the same result, bit for bit, as one that was not.

    Exit codes: 0 all done, 1 some run failed, 2 wrong usage, 130 interrupted.
    """
    prepared = prepare_resume(folders or [], threads=threads, keep=keep)
    most = max((job.options.threads for job in prepared.jobs), default=1)
    options = ExecutionOptions(jobs, most, executor, ray_address, keep)
    if not prepared.jobs and not quiet and not as_json:
        Console(stderr=True).print("nothing to resume: every run is finished", style="dim")
    finish(execute(prepared, options, quiet=quiet or as_json), quiet=quiet, as_json=as_json)
