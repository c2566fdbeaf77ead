"""Where the runs of a comparison take place: in this process, or in several on this machine.

An executor takes jobs and yields what became of each, in the order in which they end. A job is small and picklable
(a configuration, a folder, options), and doing it again after a crash goes on from its checkpoint: all that a cluster
needs too. The same job gives the same result file everywhere.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from bgd.errors import BGDError
from bgd.runs.config import RunConfig
from bgd.runs.environment import keep_memory
from bgd.runs.folder import FolderInUse, write_failure
from bgd.runs.result import RunResult
from bgd.runs.run import Options, Progress, Report, run
from bgd.runs.stop import Interrupted, stop_requests


@dataclass(frozen=True)
class Job:
    """One run to be done: all that a worker needs to know."""

    config: RunConfig
    folder: Path
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Outcome:
    """What became of a job: a result, an interruption (to be resumed), or an error with its traceback file."""

    job: Job
    result: RunResult | None = None
    error: str | None = None
    traceback: Path | None = None
    interrupted: bool = False


ProgressCallback = Callable[[Job, Progress], None]
"""Told how far each job has come."""


class Executor(Protocol):
    """Does jobs and yields their outcomes as they end; a failed one does not stop the rest.

    When asked to stop (SIGINT, SIGTERM) it lets every run save itself and yields what is interrupted; jobs not begun
    are not yielded.
    """

    def __call__(self, jobs: Sequence[Job], progress: ProgressCallback) -> Iterator[Outcome]:
        """Do the jobs."""


def attempt(job: Job, report: Report | None = None) -> Outcome:
    """Do one job and say what became of it; an error's traceback goes to ``failure.txt`` in its folder.

    >>> import tempfile
    >>> outcome = attempt(Job(RunConfig(method="sdg"), Path(tempfile.mkdtemp())))
    >>> outcome.error, outcome.traceback.name
    ("sdg, seed 0: no method 'sdg': did you mean 'sgd'?", 'failure.txt')
    """
    keep_memory()
    try:
        return Outcome(job, run(job.config, job.folder, job.options, report))
    except Interrupted as error:
        return Outcome(job, error=str(error), interrupted=True)
    except FolderInUse as error:  # the traceback would lie beside a run that has not failed
        return Outcome(job, error=str(error))
    except Exception as error:
        message = str(error) if isinstance(error, BGDError) else f"{type(error).__name__}: {error}"
        return Outcome(job, error=message, traceback=write_failure(job.folder))


def in_this_process(jobs: Sequence[Job], progress: ProgressCallback) -> Iterator[Outcome]:
    """One after the other, in this process.

    >>> import tempfile
    >>> config = RunConfig(method="sgd", setup={"tasks": {"count": 1}, "net": {"widths": [5]}})
    >>> [outcome.error for outcome in in_this_process([Job(config, Path(tempfile.mkdtemp()))], lambda *_: None)]
    [None]
    """
    with stop_requests() as wish:  # also what is asked at the very end of a run, too late for that one
        for job in jobs:

            def report(place: Progress, job: Job = job) -> None:
                progress(job, place)

            outcome = attempt(job, report)
            yield outcome
            if outcome.interrupted or wish.stop:
                return


class Processes:
    """Up to ``count`` runs at a time, each in a process of its own: one that crashes takes no other with it.

    Processes are forked from a server that has imported everything and computed nothing: quick, and safe with threads.
    Each does one run after the other, since what torch prepares at its first step takes seconds.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, jobs: Sequence[Job], progress: ProgressCallback) -> Iterator[Outcome]:
        """Do the jobs."""
        context = _context()
        waiting, workers = list(jobs), list[_Worker]()
        with stop_requests(patient=True) as wish:
            try:
                while (waiting and not wish.stop) or any(worker.job for worker in workers):
                    while waiting and not wish.stop and (worker := self._idle(workers, context)):
                        if not wish.stop:  # a new worker takes a while to start
                            worker.give(waiting.pop(0))
                    busy = {worker.connection: worker for worker in workers if worker.job}
                    if wish.stop:
                        for worker in busy.values():
                            worker.ask_to_stop()
                    for connection in wait(list(busy), timeout=0.5):
                        worker = busy[connection]
                        outcome = worker.hear(progress)
                        if worker.dead:
                            workers.remove(worker)
                        if outcome is not None:
                            yield outcome
            finally:  # also where the caller lost interest: the runs save themselves
                for worker in workers:
                    worker.end()

    def _idle(self, workers: list[_Worker], context: Any) -> _Worker | None:
        """A worker without a job, a new one if there may be more, or None."""
        for worker in workers:
            if not worker.job:
                return worker
        if len(workers) < self.count:
            workers.append(_Worker(context))
            return workers[-1]
        return None


class _Worker:
    def __init__(self, context: Any) -> None:
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), name="bgd worker")
        self.process.start()
        theirs.close()
        self.job: Job | None = None
        self.dead = False
        self._ready = False
        self._asked = False

    def give(self, job: Job) -> None:
        self.job, self._asked = job, False
        with contextlib.suppress(OSError):  # it died while idle: the next word from it says so
            self.connection.send(job)

    def hear(self, progress: ProgressCallback) -> Outcome | None:
        """What the worker has to say: progress (None), or the outcome; its silence means that it was killed."""
        assert self.job is not None
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            self.dead = True
            return self._died(self.process.exitcode, self.job)
        if message is None:
            self._ready = True
            return None
        if not isinstance(message, Outcome):
            progress(self.job, message)
            return None
        self.job = None
        return message

    def end(self) -> None:
        """Let it save what it is at, and go."""
        self.ask_to_stop()
        while self.job and not self.dead:
            self.hear(lambda *_: None)
            self.ask_to_stop()
        self.connection.close()
        self.process.join()

    def _died(self, exit_code: int | None, job: Job) -> Outcome:
        go_on = f"bgd resume {job.folder}"
        if exit_code in (-signal.SIGINT, -signal.SIGTERM):
            return Outcome(job, error=f"interrupted; go on with: {go_on}", interrupted=True)
        how = f"exit code {exit_code}"
        if exit_code is not None and exit_code < 0:
            how = signal.Signals(-exit_code).name
            how += ", perhaps for lack of memory" if how == "SIGKILL" else ""
        return Outcome(job, error=f"its process died ({how}); it can go on from its last checkpoint with: {go_on}")

    def ask_to_stop(self) -> None:
        """Once, and not before it listens: a process that is just starting ignores it."""
        if self.job and self._ready and not self._asked and self.process.pid and self.process.is_alive():
            self._asked = True
            os.kill(self.process.pid, signal.SIGINT)


def _work(connection: Connection) -> None:
    # while no run listens for it, a wish to stop may end the process: there is nothing to save
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with contextlib.suppress(EOFError, BrokenPipeError):
        connection.send(None)  # ready
        while True:
            job = connection.recv()
            patient = replace(job, options=replace(job.options, patient=True))
            outcome = attempt(patient, connection.send)
            connection.send(replace(outcome, job=job))


def _context() -> Any:
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver  # which Windows does not have

    context = multiprocessing.get_context("forkserver")
    # what this process has imported already, the server imports once, rather than every worker anew
    ours = [name for name in sys.modules if name.partition(".")[0] == "bgd" or name == "sklearn.datasets"]
    context.set_forkserver_preload(ours)
    with _sigint_ignored():  # while the server imports, Ctrl-C is for us alone
        forkserver.ensure_running()
    return context


@contextlib.contextmanager
def _sigint_ignored() -> Iterator[None]:
    """Processes that are started meanwhile ignore SIGINT, until they ask for it."""
    if threading.current_thread() is not threading.main_thread():  # the only one that may change it
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
