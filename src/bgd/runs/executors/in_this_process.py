"""Runs in this process, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bgd.runs.executors.types import Job, Outcome, ProgressCallback, attempt
from bgd.runs.progress import Progress
from bgd.runs.stop import stop_requests


def in_this_process(jobs: Sequence[Job], progress: ProgressCallback) -> Iterator[Outcome]:
    """Do the jobs one after the other.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from bgd.runs.config import RunConfig
    >>> config = RunConfig(method="sgd", setup={"tasks": {"count": 1}, "net": {"widths": [5]}})
    >>> [outcome.error for outcome in in_this_process([Job(config, Path(tempfile.mkdtemp()))], lambda *_: None)]
    [None]
    """
    with stop_requests() as stop:  # also a request at the very end of a run, too late for that one
        for job in jobs:

            def report(current: Progress, job: Job = job) -> None:
                progress(job, current)

            outcome = attempt(job, report)
            yield outcome
            if outcome.interrupted or stop.requested:
                return
