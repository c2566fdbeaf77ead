"""Submits runs to a cluster, follows their progress, and submits those again whose worker failed."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bgd.runs.environment import available_cores
from bgd.runs.errors import RunError
from bgd.runs.executors.ray.worker import Driver, describe_driver, progress_board, work
from bgd.runs.executors.types import Job, Outcome, ProgressCallback
from bgd.runs.folder import RunFolder, write_failure
from bgd.runs.progress import Progress
from bgd.runs.stop import StopRequest

FAILURES = 3  # workers of one run that may fail in a row without a new checkpoint
TICK = 0.2  # seconds between two checks for progress and outcomes
GRACE = 60.0  # seconds for runs to save their state when the caller closes the executor

logger = logging.getLogger(__name__)


def resources(job: Job) -> dict[str, int]:
    """What a job requires of its node.

    >>> from bgd.runs.options import Options
    >>> from bgd.runs.config import RunConfig
    >>> resources(Job(RunConfig(method="sgd"), Path("x"), Options(threads=4)))
    {'num_cpus': 4}
    >>> resources(Job(RunConfig(method="sgd", device="cuda"), Path("x")))
    {'num_cpus': 1, 'num_gpus': 1}
    """
    device = job.config.device
    if device.startswith("cuda:"):
        raise RunError(f"device {device!r}: Ray gives each run a GPU of its own, which it sees as 'cuda': use that")
    return {"num_cpus": job.options.threads} | ({"num_gpus": 1} if device == "cuda" else {})


def slots(jobs: Sequence[Job], count: int) -> int:
    """Cores to offer on a local cluster: for ``count`` runs at a time, else all there are, at least for one run.

    >>> from bgd.runs.options import Options
    >>> from bgd.runs.config import RunConfig
    >>> jobs = 3 * [Job(RunConfig(method="sgd"), Path("x"), Options(threads=2))]
    >>> slots(jobs, count=2), slots(jobs, count=100)
    (4, 6)
    """
    threads = max(job.options.threads for job in jobs)
    return min(count or max(1, available_cores() // threads), len(jobs)) * threads


@dataclass
class Task:
    """A job that was submitted or waits, and how often its worker has failed since its last new checkpoint."""

    job: Job
    resources: dict[str, int]
    failures: int = 0
    newest: Path | None = None
    cancelled: bool = False


class Scheduler:
    """The tasks of one call of the executor.

    Args:
        ray: the module, connected to a cluster.
        count: tasks at a time.
        stop: set when all runs are to save and end.
    """

    def __init__(self, ray: Any, count: int, stop: StopRequest) -> None:
        self.ray, self.count, self.stop = ray, count, stop
        self.running: dict[Any, Task] = {}
        self.remote = ray.remote(work)
        this_node = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self.board = ray.remote(progress_board()).options(num_cpus=0, scheduling_strategy=this_node).remote()
        self.latest = self.board.take.remote()

    def run(self, waiting: list[Task], progress: ProgressCallback) -> Iterator[Outcome]:
        """Do all tasks, as the executor's protocol defines it."""
        try:
            while self.running or (waiting and not self.stop.requested):
                while waiting and len(self.running) < self.count and not self.stop.requested:
                    self._submit(waiting.pop(0))
                if self.stop.requested:
                    self._cancel_all()
                ended, _ = self.ray.wait(list(self.running), num_returns=1, timeout=TICK)
                self._report(progress)
                for reference in ended:
                    outcome = self._receive(self.running.pop(reference), reference)
                    if outcome is not None:
                        yield outcome
        finally:
            self._cancel_all()
            if self.running:
                self.ray.wait(list(self.running), num_returns=len(self.running), timeout=GRACE)
            self.ray.kill(self.board)

    def _submit(self, task: Task) -> None:
        # retries are ours: Ray would not know whether the run got further, nor wait for the failed worker's lock
        remote = self.remote.options(max_retries=0, name=f"bgd {task.job.config.title}", **task.resources)
        options = replace(task.job.options, ignore_second_signal=True)
        folders = tuple(str(Path(path).absolute()) for path in task.job.import_paths)
        job = replace(task.job, folder=task.job.folder.absolute(), options=options, import_paths=folders)
        driver: Driver = describe_driver()
        self.running[remote.remote(job, driver, self.board, retry=task.failures > 0)] = task

    def _cancel_all(self) -> None:
        """Request all runs to stop: Ray calls SIGINT's handler in the worker, and the run saves its state as always."""
        for reference, task in self.running.items():
            if not task.cancelled:
                task.cancelled = True
                self.ray.cancel(reference)

    def _report(self, progress: ProgressCallback) -> None:
        """Pass on what the workers have reported since the last time."""
        if not self.ray.wait([self.latest], timeout=0)[0]:
            return
        with contextlib.suppress(self.ray.exceptions.RayError):  # without the board there is no progress, but results
            reports = self.ray.get(self.latest)
            for task in self.running.values():
                if (report := reports.get(str(task.job.folder.absolute()))) is not None:
                    progress(task.job, Progress(*report))
        self.latest = self.board.take.remote()

    def _receive(self, task: Task, reference: Any) -> Outcome | None:
        """The outcome of a task; None if it was submitted again, or stopped before it began."""
        errors, job = self.ray.exceptions, task.job
        try:
            outcome: Outcome = self.ray.get(reference)
        except errors.TaskCancelledError:
            if task.cancelled:  # waiting, or not beyond the checkpoint that it would have continued from
                return None
            return self._retry(task, "cancelled by someone else")
        except errors.RayTaskError as error:
            # not an error of the run, which would have given an outcome
            reason = f"its worker could not begin ({error.cause}): bgd must be installed on every node"
            return Outcome(job, error=reason, traceback=write_failure(job.folder))
        except errors.RayError as error:
            return self._retry(task, f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")
        if outcome.interrupted and not task.cancelled:  # a node that shuts down ends its workers
            return self._retry(task, "ended by its node")
        return replace(outcome, job=job, traceback=outcome.traceback and job.folder / outcome.traceback.name)

    def _retry(self, task: Task, reason: str) -> Outcome | None:
        """Continue from the last checkpoint, unless the run makes no progress any more."""
        job = task.job
        if task.cancelled:
            return Outcome(job, error=f"interrupted; continue with: bgd resume {job.folder}", interrupted=True)
        newest = next(iter(RunFolder(job.folder).checkpoints.paths()), None)
        task.failures = task.failures + 1 if newest == task.newest else 1
        task.newest = newest
        if task.failures > FAILURES:
            return Outcome(
                job,
                error=f"{task.failures} workers failed in a row without a new checkpoint ({reason}); continue from its "
                f"last checkpoint with: bgd resume {job.folder}",
            )
        logger.info("%s: worker failed (%s), continuing from %s", job.config.title, reason, newest or "the start")
        self._submit(task)
        return None
