"""Run a comparison from Python, as ``bgd run`` does from the shell.

from bgd.api import run_experiment

result = run_experiment("digits", "smoke", rows=["BGD", "SGD"])
result                      # in a notebook: tables
result.dataframe            # a row for each run
result.report("report")     # tables, figures and a page
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgd.errors import MissingExtraError
from bgd.experiments import Experiment, load, make_plan
from bgd.experiments.execution import Execution, ExecutionOptions, execute, prepare
from bgd.experiments.storage import read_comparison
from bgd.experiments.text import count
from bgd.report.export import run_records
from bgd.report.load import compare_stored
from bgd.report.summary import Comparison
from bgd.report.tables import Table, all_tables, to_html, to_text
from bgd.report.write import write
from bgd.runs.errors import Interrupted
from bgd.runs.executors import Outcome

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class ExperimentResult:
    """The results of an experiment: all finished runs of its folder, also those of earlier calls.

    Attributes:
        folder: of the comparison; ``bgd report``, ``bgd resume`` and ``bgd pack`` take it.
        failed: the runs of this call that ended with an error, each with its message and traceback file.
    """

    folder: Path
    failed: tuple[Outcome, ...] = ()

    @cached_property
    def comparison(self) -> Comparison:
        """The results set side by side."""
        return compare_stored(read_comparison(self.folder))

    @cached_property
    def tables(self) -> list[Table]:
        """The tables of the report; ``print(result)`` shows them as text."""
        return all_tables(self.comparison)

    @cached_property
    def dataframe(self) -> pandas.DataFrame:
        """A row for each finished run: row, column, method, seed, accuracies in percent, other metrics, time."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", "experiments") from None
        return pandas.DataFrame(run_records([self.comparison]))

    def report(self, folder: str | Path | None = None) -> Path:
        """Write tables, figures and one self-contained page; returns the page's path.

        Args:
            folder: to write to; by default ``report`` in the folder of the comparison.
        """
        written = write([self.comparison], Path(folder or self.folder / "report"), command="")
        return written[0]

    def __str__(self) -> str:
        return "\n".join(to_text(table) for table in self.tables)

    def _repr_html_(self) -> str:
        """For notebooks."""
        failed = f"<p><b>{count(len(self.failed), 'run')} failed</b></p>" if self.failed else ""
        return "\n".join([*map(to_html, self.tables), failed])


def run_experiment(
    experiment: str | Path | Experiment,
    preset: str | None = None,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    overrides: Mapping[str, Any] | Sequence[str] | None = None,
    out: str | Path | None = None,
    jobs: int = 1,
    threads: int = 1,
    executor: str = "auto",
    ray_address: str | None = None,
    device: str = "cpu",
    keep: bool = False,
    reuse: bool = True,
    rerun: bool = False,
    progress: bool = True,
) -> ExperimentResult:
    """Run every row, column and seed of an experiment that has no result yet.

    Ctrl-C saves the state of every run and raises :class:`bgd.runs.Interrupted`; the same call continues from
    there, and ends with the same results bit for bit. A run that fails does not stop the others: see ``failed``.

    Args:
        experiment: a name that ``bgd list`` shows, the path of a TOML file, or an
            :class:`~bgd.experiments.Experiment`, in which the method of a row may be a class.
        preset: its scale; None for ``quick``, or the first.
        rows: labels of rows, or names of methods; None for all.
        columns: labels of columns; None for all.
        seeds: instead of the preset's.
        overrides: values over whatever is declared, such as ``{"stream.epochs": 2, "bgd.mc_samples": 4}``.
        out: the folder for results; by default ``BGD_RUNS``, or else the one that ``bgd doctor`` shows.
        jobs: runs at a time, each in its own process if more than one; 0: one for each core.
        threads: of torch in each run. Results are the same bits for the same number.
        executor: ``auto``, ``serial`` (in this process), ``processes`` or ``ray``.
        ray_address: of a running Ray cluster; implies ``ray``.
        device: of torch.
        keep: keep each run's last checkpoint, with the trained network.
        reuse: copy results that another comparison in ``out`` has, labels aside.
        rerun: run everything again: earlier results of these runs are removed.
        progress: show progress on stderr.

    Raises:
        ExperimentError: for a name, key or value that the experiment does not have.
        RunError: for a run that is not possible, before anything starts.
        Interrupted: on SIGINT or SIGTERM.

    >>> import tempfile
    >>> result = run_experiment(
    ...     "digits", "smoke", rows=["SGD"], columns=["new classes, no replay"], out=tempfile.mkdtemp(), progress=False
    ... )
    >>> result.folder.name, list(result.dataframe["row"]), result.failed
    ('digits-smoke', ['SGD'], ())
    """
    declared = experiment if isinstance(experiment, Experiment) else load(experiment)
    options = ExecutionOptions(jobs, threads, executor, ray_address, keep)
    plan = make_plan(declared, preset, rows=rows, columns=columns, seeds=seeds, overrides=overrides, device=device)
    name = declared.name if isinstance(experiment, Experiment) else str(experiment)
    command = f"run_experiment({name!r}, {plan.preset!r})"
    prepared = prepare(plan, options, Path(out) if out else None, reuse=reuse, rerun=rerun, command=command)
    execution = execute(prepared, options, quiet=not progress)
    check_interrupted(execution, "call run_experiment again")
    if changed := execution.by_other_code:
        methods = ", ".join(dict.fromkeys(job.config.method for job in changed))
        warnings.warn(
            f"{count(len(changed), 'run')}, at least in part, by other code of {methods} than today's: rerun=True "
            "runs them again",
            UserWarning,
            stacklevel=2,
        )
    return ExperimentResult(prepared.comparisons[0], tuple(execution.failed))


def check_interrupted(execution: Execution, way: str) -> None:
    """Raise an error if an execution was interrupted; ``way`` is how to continue."""
    if execution.interrupted:
        left = count(execution.interrupted, "run")
        raise Interrupted(f"interrupted; everything is saved. {left} left; to continue: {way}")
