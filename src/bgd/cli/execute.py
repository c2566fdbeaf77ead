"""What ``bgd run`` and ``bgd resume`` share: do jobs, show how they go, say what came of them, choose an exit code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bgd.cli.progress import display
from bgd.cli.report import show
from bgd.experiments.storage import collect, read_declaration
from bgd.report.formatting import count
from bgd.report.load import compare_stored
from bgd.report.tables import overview
from bgd.runs.code import code_digest
from bgd.runs.compatibility import check_compatible
from bgd.runs.environment import available_cores
from bgd.runs.errors import Interrupted, RunError
from bgd.runs.executors import Executor, Job, OnRay, Outcome, Processes, in_this_process
from bgd.runs.folder import finished, read_machine
from bgd.runs.options import Options
from bgd.runs.validation import prepare_data


class ExecutorChoice(StrEnum):
    """ExecutorChoice runs take place."""

    AUTO = "auto"
    HERE = "here"
    PROCESSES = "processes"
    RAY = "ray"


Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        min=0,
        help="Runs at a time, each in its own process; 0: one for each core (on Ray, of the cluster).",
    ),
]
Threads = Annotated[
    int,
    typer.Option(
        min=1,
        help="Threads of torch in each run. Results are the same bits wherever a run takes place, for one number.",
    ),
]
In = Annotated[ExecutorChoice, typer.Option("--executor", help="This process, local processes, or a Ray cluster.")]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Of a running Ray cluster, or auto; else RAY_ADDRESS; else Ray is started on this machine. Results must "
        "be on a file system that all nodes share.",
        show_default=False,
    ),
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep each run's last checkpoint, with the trained network.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print what came of it as JSON; nothing else on stdout.")]


@dataclass(frozen=True)
class RunOptions:
    """The options of running, as given on the command line."""

    jobs: int = 0
    threads: int = 1
    executor: ExecutorChoice = ExecutorChoice.AUTO
    keep: bool = False
    quiet: bool = False
    as_json: bool = False
    ray_address: str | None = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.ray_address and self.executor not in (ExecutorChoice.AUTO, ExecutorChoice.RAY):
            raise typer.BadParameter(f"--ray-address goes with --executor ray, not {self.executor}")

    def options(self) -> Options:
        """Of each run."""
        return Options(threads=self.threads, keep=self.keep)

    def choose(self, runs: int) -> Executor:
        """The executor for so many runs."""
        if self.executor is ExecutorChoice.RAY or self.ray_address:
            return OnRay(self.jobs, self.ray_address)
        count = min(self.jobs or max(1, available_cores() // self.threads), max(runs, 1))
        if self.executor is ExecutorChoice.HERE or (self.executor is ExecutorChoice.AUTO and count == 1):
            return in_this_process
        return Processes(count)


def ready(jobs: Iterable[Job], anew: bool = False) -> None:
    """Fetch the data of the jobs that are not done yet, and refuse what is wrong with it or with the network for it.

    With ``anew`` what is done counts for nothing.

    Raises:
        BGDError: says what is wrong; nothing has been started.
    """
    todo = []
    for job in jobs:
        if not anew:
            check_compatible(job.config, job.folder)
        if anew or not finished(job.folder):
            todo.append(job.config)
    prepare_data(todo)


def execute(
    jobs: Sequence[Job], how: RunOptions, comparisons: Sequence[Path], taken: Mapping[Path, Path] | None = None
) -> None:
    """Do the jobs that are not done yet, which are :func:`ready`; then tables, errors, and where everything is.

    Args:
        jobs: all of them.
        how: the options of running.
        comparisons: the folders that the jobs belong to.
        taken: folders of jobs whose work another comparison had done, each with the folder of that run.

    Raises:
        RunError: if any run failed (exit code 1).
        Interrupted: if someone asked to stop (exit code 130).
    """
    todo = [job for job in jobs if not finished(job.folder)]
    outcomes: list[Outcome] = []
    with display(todo, how.quiet or how.as_json) as shown:
        for outcome in how.choose(len(todo))(todo, shown.progress):
            shown.ended(outcome)
            outcomes.append(outcome)
    failed = [o for o in outcomes if o.error and not o.interrupted]
    left = len(todo) - sum(o.result is not None for o in outcomes) - len(failed)
    if how.as_json:
        print(json.dumps(_record(jobs, outcomes, comparisons, taken or {}), indent=2))
    elif not how.quiet:
        new = {job.folder for job in todo} | set(taken or {})
        _tables(comparisons, [job for job in jobs if job.folder not in new], taken or {})
    go_on = " ".join(str(path) for path in comparisons)
    if left:
        raise Interrupted(f"interrupted; all is saved. {count(left, 'run')} left; go on with: bgd resume {go_on}")
    if failed:
        raise RunError(_failures(failed, len(jobs), go_on))


def _tables(comparisons: Sequence[Path], before: Sequence[Job], taken: Mapping[Path, Path]) -> None:
    console = Console()
    if before:
        console.print(f"{count(len(before), 'run')} had been done before", style="dim", highlight=False)
    if changed := Counter(job.config.method for job in before if _by_other_code(job)):
        said = f"{count(changed.total(), 'run')} of them by other code of {', '.join(changed)} than today's: "
        console.print(f"{said}--again does them anew", style="yellow", highlight=False, soft_wrap=True)
    for donor, number in Counter(run.parent for run in taken.values()).items():
        said = f"{count(number, 'run')} taken over from {donor}, the same work (--no-reuse does it again)"
        console.print(said, style="dim", highlight=False, markup=False, soft_wrap=True)
    for folder in comparisons:
        collected = collect(folder)
        found = compare_stored(collected)
        show(console, found, [overview(found)] if collected.results else [])
        console.print(
            f"in {folder}\nfor tables, figures and a page: bgd report {folder}", highlight=False, soft_wrap=True
        )


def _by_other_code(job: Job) -> bool:
    """Whether the code that a run passes through has changed since."""
    machine, now = read_machine(job.folder), code_digest(job.config)
    return machine is not None and machine.versions.get("code", now) != now


def _failures(failed: Sequence[Outcome], total: int, go_on: str) -> str:
    lines = [f"{len(failed)} of {count(total, 'run')} failed:"]
    for outcome in failed:
        where = f" ({outcome.traceback})" if outcome.traceback else ""
        lines.append(f"  {outcome.job.config.title}: {outcome.error}{where}")
    return "\n".join([*lines, f"try these again with: bgd resume {go_on}"])


def _record(
    jobs: Sequence[Job], outcomes: Sequence[Outcome], comparisons: Sequence[Path], taken: Mapping[Path, Path]
) -> dict[str, Any]:
    said = {outcome.job.folder: outcome for outcome in outcomes}
    runs = []
    for folder in comparisons:
        done = {(r.config.digest): r for r in collect(folder).results}
        for job in jobs:
            if job.folder.parent != folder:
                continue
            outcome, result = said.get(job.folder), done.get(job.config.digest)
            runs.append(
                {
                    "row": job.config.row,
                    "column": job.config.column,
                    "seed": job.config.seed,
                    "folder": str(job.folder),
                    "average_accuracy": result.average_accuracy if result else None,
                    "by_inference": result.by_inference if result else None,
                    "metrics": result.metrics if result else None,
                    "warnings": result.warnings if result else [],
                    "seconds": result.machine.seconds if result and result.machine else None,
                    "error": outcome.error if outcome else None,
                    "traceback": str(outcome.traceback) if outcome and outcome.traceback else None,
                    "new": outcome is not None,
                    "taken_from": str(taken[job.folder]) if job.folder in taken else None,
                }
            )
    return {
        "comparisons": [
            {"folder": str(folder), "experiment": (d := read_declaration(folder)).experiment.name, "preset": d.preset}
            for folder in comparisons
        ],
        "runs": runs,
    }
