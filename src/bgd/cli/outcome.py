"""What ``bgd run`` and ``bgd resume`` print in the end: tables, errors, the folder; and their exit code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bgd.api import check_interrupted
from bgd.cli.errors import FailedError
from bgd.cli.report import print_tables
from bgd.experiments.execution import Execution
from bgd.experiments.storage import read_comparison, read_declaration
from bgd.experiments.text import count
from bgd.report.load import compare_stored
from bgd.report.tables import overview
from bgd.runs.executors import Job, Outcome
from bgd.runs.result import RunResult


def finish(execution: Execution, *, quiet: bool, as_json: bool) -> None:
    """Print what happened.

    Raises:
        FailedError: if any run failed (exit code 1).
        Interrupted: after SIGINT or SIGTERM (exit code 130).
    """
    comparisons = execution.prepared.comparisons
    if as_json:
        print(json.dumps(_record(execution), indent=2))
    elif not quiet:
        _print_summary(execution)
    resume = f"bgd resume {' '.join(map(str, comparisons))}".strip()
    check_interrupted(execution, resume)
    if execution.failed:
        raise FailedError(_describe_failures(execution.failed, len(execution.prepared.jobs), resume))


def _print_summary(execution: Execution) -> None:
    console = Console()
    if execution.before:
        _print(console, f"{count(len(execution.before), 'run')} finished before", "dim")
    changed = Counter(job.config.method for job in execution.by_other_code)
    if changed:
        runs = f"{count(changed.total(), 'run')}, at least in part, by other code of {', '.join(changed)} than today's"
        _print(console, f"{runs}: --rerun runs them again", "yellow")
    for source, number in Counter(run.parent for run in execution.prepared.reused.values()).items():
        _print(console, f"{count(number, 'run')} reused from {source} (--no-reuse runs them again)", "dim")
    for folder in execution.prepared.comparisons:
        stored = read_comparison(folder)
        summary = compare_stored(stored)
        print_tables(console, summary, [overview(summary)] if stored.results else [])
        _print(console, f"in {folder}\nfor tables, figures and a page: bgd report {folder}")


def _print(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def _describe_failures(failed: Sequence[Outcome], total: int, resume: str) -> str:
    lines = [f"{len(failed)} of {count(total, 'run')} failed:"]
    for outcome in failed:
        where = f" ({outcome.traceback})" if outcome.traceback else ""
        lines.append(f"  {outcome.job.config.title}: {outcome.error}{where}")
    return "\n".join([*lines, f"to try again: {resume}"])


def _record(execution: Execution) -> dict[str, Any]:
    comparisons, runs = [], []
    for folder in execution.prepared.comparisons:
        declaration = read_declaration(folder)
        comparisons.append(
            {"folder": str(folder), "experiment": declaration.experiment.name, "preset": declaration.preset}
        )
        results = {result.config.digest: result for result in read_comparison(folder).results}
        outcomes = {outcome.job.folder: outcome for outcome in execution.outcomes}
        for job in execution.prepared.jobs:
            if job.folder.parent == folder:
                source = execution.prepared.reused.get(job.folder)
                result, outcome = results.get(job.config.digest), outcomes.get(job.folder)
                runs.append(_run_record(job, result, outcome, source))
    return {"comparisons": comparisons, "runs": runs}


def _run_record(job: Job, result: RunResult | None, outcome: Outcome | None, source: Path | None) -> dict[str, Any]:
    return {
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
        "reused_from": str(source) if source else None,
    }
