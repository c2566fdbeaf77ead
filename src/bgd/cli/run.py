"""``bgd run``: one line for a whole comparison."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from bgd.cli.options import (
    Executor,
    ExperimentName,
    Jobs,
    Json,
    Keep,
    OutFolder,
    Quiet,
    RayAddress,
    Threads,
    complete_method,
    complete_preset,
    parse_seeds,
)
from bgd.cli.outcome import finish
from bgd.experiments import load, make_plan
from bgd.experiments.execution import ExecutionOptions, ExecutorName, execute, prepare


def run(
    experiment: ExperimentName,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            "-p",
            help="Its scale: smoke (seconds), quick (minutes; the default), short (within an hour or so on a CPU, for "
            "some), paper (the paper's own). bgd list shows the expected times.",
            autocompletion=complete_preset,
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--row",
            "-r",
            metavar="LABEL",
            help="Only this row: its label, or a method for all its rows; may be repeated.",
            autocompletion=complete_method,
            show_default=False,
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", "-c", metavar="LABEL", help="Only this column; may be repeated.", show_default=False),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Instead of the preset's: 2019,2020 or 2019-2028.", show_default=False)
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override a value: stream.epochs=2, net.precision=bfloat16, bgd.mc_samples=2; may be repeated. Such "
            "runs get a folder of their own.",
            show_default=False,
        ),
    ] = None,
    jobs: Jobs = 0,
    threads: Threads = 1,
    executor: Executor = ExecutorName.AUTO,
    ray_address: RayAddress = None,
    out: OutFolder = None,
    device: Annotated[str, typer.Option(help="Of torch: cpu, cuda, cuda:1, mps.")] = "cpu",
    keep: Keep = False,
    reuse: Annotated[
        bool, typer.Option(help="Reuse results that another comparison in the same folder has, labels aside.")
    ] = True,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Run everything again: earlier results of these runs are removed.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run an experiment: every row, column and seed that has no result yet.

    Interrupted (Ctrl-C), killed or failed, it continues with the same command, or with bgd resume, from the last
    checkpoint of each run, and ends with the same results bit for bit. After a change to a method's code, --rerun
    runs it again.

    Exit codes: 0 all done, 1 some run failed, 2 wrong usage, 130 interrupted.
    """
    options = ExecutionOptions(jobs, threads, executor, ray_address, keep)
    plan = make_plan(
        load(experiment),
        preset,
        rows=rows,
        columns=columns,
        seeds=parse_seeds(seeds) if seeds else None,
        overrides=overrides,
        device=device,
    )
    command = shlex.join(["bgd", *sys.argv[1:]])
    prepared = prepare(plan, options, out, reuse=reuse, rerun=rerun, command=command)
    finish(execute(prepared, options, quiet=quiet or as_json), quiet=quiet, as_json=as_json)
