"""``bgd run``: one line for a whole comparison."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from bgd.cli.execute import ExecutorChoice, In, Jobs, Json, Keep, Quiet, RayAddress, RunOptions, Threads, execute, ready
from bgd.errors import BGDError
from bgd.experiments import EXPERIMENTS, check_changes, comparison_folder, load, overridden, plan, run_folder
from bgd.experiments.plan import preset_of
from bgd.experiments.reuse import find_reusable, reuse_results
from bgd.experiments.storage import Declaration, declare
from bgd.methods import METHODS
from bgd.runs.environment import results_folder
from bgd.runs.executors import Job
from bgd.runs.folder import RunFolder

SCALES = ("smoke", "quick", "short", "bfloat16", "paper")
"""The presets of the built-in experiments; not every one has a short one, and one has one in bfloat16."""


def names_of_experiments(incomplete: str) -> list[str]:
    """For the shell's completion.

    >>> names_of_experiments("digi")
    ['digits']
    """
    return [name for name in EXPERIMENTS if name.startswith(incomplete)]


def _names_of_presets(incomplete: str) -> list[str]:
    return [name for name in SCALES if name.startswith(incomplete)]


def _names_of_methods(incomplete: str) -> list[str]:
    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in METHODS if name.startswith(last)]


Name = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT",
        help="A name that bgd list shows, or a TOML file of your own.",
        autocompletion=names_of_experiments,
    ),
]


def seeds_from(text: str) -> list[int]:
    """Seeds from numbers and ranges.

    >>> seeds_from("7,2019-2021")
    [7, 2019, 2020, 2021]
    >>> try:
    ...     seeds_from("two")
    ... except typer.BadParameter as error:
    ...     print(error)
    'two': give whole numbers and ranges, such as 2019-2021 or 1,2,3
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match or (match[2] and int(match[2]) < int(match[1])):
            raise typer.BadParameter(f"{text!r}: give whole numbers and ranges, such as 2019-2021 or 1,2,3")
        seeds += range(int(match[1]), int(match[2] or match[1]) + 1)
    return list(dict.fromkeys(seeds))


def labels_from(text: str, labels: Collection[str]) -> list[str]:
    """Names separated by commas, of which some may have a comma of their own: the longest of ``labels`` counts.

    >>> labels_from("SGD, K = 2, capped,K = 4", ["K = 2", "K = 2, capped", "K = 4"])
    ['SGD', 'K = 2, capped', 'K = 4']
    """
    parts, found = [part.strip() for part in text.split(",")], []
    while parts:
        joined = [", ".join(parts[:end]) for end in range(len(parts), 0, -1)]
        found.append(next((name for name in joined if name in labels), joined[-1]))
        del parts[: found[-1].count(", ") + 1]
    return found


@contextmanager
def wrong_usage() -> Iterator[None]:
    """What is refused in here was asked for wrongly, and no run has failed: exit code 2.

    >>> try:
    ...     with wrong_usage():
    ...         raise BGDError("no such thing")
    ... except BGDError as error:
    ...     print(error.exit_code)
    2
    """
    try:
        yield
    except BGDError as error:
        error.exit_code = 2
        raise


def run(
    experiment: Name,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            "-p",
            help="Its scale: smoke (seconds), quick (minutes; the default), short (within an hour on a CPU, where "
            "there is one), bfloat16 (the paper's own with products in bfloat16, where there is one), paper (the "
            "paper's own).",
            autocompletion=_names_of_presets,
            show_default=False,
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            "-m",
            help="Only these rows: labels or names of methods, separated by commas.",
            autocompletion=_names_of_methods,
            show_default=False,
        ),
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--column", help="Only this column; may be repeated.", show_default=False)
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Instead of the preset's: 2019,2020 or 2019-2028.", show_default=False)
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a setting: stream.epochs=2, data.train=1000, bgd.mc_samples=2; may be repeated. Such runs get "
            "a folder of their own.",
            show_default=False,
        ),
    ] = None,
    jobs: Jobs = 0,
    threads: Threads = 1,
    executor: In = ExecutorChoice.AUTO,
    ray_address: RayAddress = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="ExecutorChoice results go; else BGD_RUNS, else a folder that bgd doctor shows.", show_default=False
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="Of torch: cpu, cuda, cuda:1, mps.")] = "cpu",
    keep: Keep = False,
    reuse: Annotated[
        bool, typer.Option(help="Take over runs that another comparison in the same place has done, label aside.")
    ] = True,
    again: Annotated[
        bool, typer.Option("--again", help="Do these runs anew, also those that are done: what they gave is removed.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run an experiment: every method, setting and seed that is not done yet.

    Interrupted (Ctrl-C), killed or failed, it goes on with the same command, or with bgd resume, from the last
    checkpoint of each run, and ends with the same results bit for bit. After a change to a method's own file,
    --again does its runs anew.

    Exit codes: 0 all done, 1 some run failed, 2 wrong usage, 130 interrupted.
    """
    changes = changes or []
    declared = load(experiment)
    scale, _ = preset_of(declared, preset)
    if changes:
        declared = overridden(declared, scale, changes)
    with wrong_usage():
        configs = plan(
            declared,
            scale,
            rows=labels_from(methods, declared.rows) if methods else None,
            columns=columns,
            seeds=seeds_from(seeds) if seeds else None,
            device=device,
        )
        check_changes(changes, configs)
    place = (out or results_folder()).expanduser()
    folder = comparison_folder(place, declared, scale, changes)
    command = shlex.join(["bgd", *sys.argv[1:]])
    how = RunOptions(jobs, threads, executor, keep, quiet, as_json, ray_address)
    planned = {run_folder(folder, config): config for config in configs}
    # a run taken over has no network to keep
    done = find_reusable(planned, declared, place, threads) if reuse and not keep and not again else {}
    todo = [Job(config, path, how.options()) for path, config in planned.items()]
    # before a wrong declaration stands in place of a right one
    ready([job for job in todo if job.folder not in done], again)
    if again:
        for path, config in planned.items():
            with RunFolder(path).opened(config) as old:
                old.clear()
    declare(folder, Declaration(experiment=declared, preset=scale, changes=tuple(changes), command=command), configs)
    reuse_results(planned, done)
    execute(todo, how, [folder], {path: donor.place for path, donor in done.items()})
