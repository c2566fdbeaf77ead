"""Runs in several processes on this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any

from bgd.runs.executors.types import Job, Outcome, ProgressCallback, attempt
from bgd.runs.own_modules import check_importable
from bgd.runs.progress import Progress
from bgd.runs.stop import stop_requests


class Processes:
    """Up to ``count`` runs at a time, each in a process of its own: one that crashes does not affect the others.

    Processes are forked from a server that has imported everything and computed nothing: quick, and safe with threads.
    Each does one run after the other, since what torch prepares at its first step takes seconds.

    >>> Processes(2).count
    2
    """

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, jobs: Sequence[Job], progress: ProgressCallback) -> Iterator[Outcome]:
        """Do the jobs."""
        check_importable((job.config for job in jobs), "a worker process")
        context = _context()
        waiting, workers = list(jobs), list[_Worker]()
        with stop_requests(ignore_second_signal=True) as stop:
            try:
                while (waiting and not stop.requested) or any(worker.job for worker in workers):
                    while waiting and not stop.requested and (worker := self._free_worker(workers, context)):
                        if not stop.requested:  # a new worker takes a while to start
                            worker.send(waiting.pop(0))
                    busy = {worker.connection: worker for worker in workers if worker.job}
                    if stop.requested:
                        for worker in busy.values():
                            worker.request_stop()
                    for connection in wait(list(busy), timeout=0.5):
                        worker = busy[connection]
                        outcome = worker.receive(progress)
                        if worker.dead:
                            workers.remove(worker)
                        if outcome is not None:
                            yield outcome
            finally:  # also where the caller closed this generator: the runs save their state
                for worker in workers:
                    worker.end()

    def _free_worker(self, workers: list[_Worker], context: Any) -> _Worker | None:
        """A worker without a job, a new one if there may be more, or None."""
        for worker in workers:
            if not worker.job:
                return worker
        if len(workers) < self.count:
            workers.append(_Worker(context))
            return workers[-1]
        return None


class _Worker:
    """A worker process, as its parent sees it."""

    def __init__(self, context: Any) -> None:
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), name="bgd worker")
        with _main_module_hidden():
            self.process.start()
        theirs.close()
        self.job: Job | None = None
        self.dead = False
        self._ready = False
        self._stop_requested = False

    def send(self, job: Job) -> None:
        self.job, self._stop_requested = job, False
        with contextlib.suppress(OSError):  # it died while it waited: the next receive finds out
            self.connection.send(job)

    def receive(self, progress: ProgressCallback) -> Outcome | None:
        """Handle the next message: progress (None), or the outcome; a closed pipe means that the process died."""
        assert self.job is not None
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            self.dead = True
            return _outcome_of_death(self.process.exitcode, self.job)
        if message is None:
            self._ready = True
            return None
        if not isinstance(message, Outcome):
            progress(self.job, message)
            return None
        self.job = None
        return message

    def request_stop(self) -> None:
        """Once, and only when it is ready: a process that is just starting ignores the signal."""
        if self.job and self._ready and not self._stop_requested and self.process.pid and self.process.is_alive():
            self._stop_requested = True
            os.kill(self.process.pid, signal.SIGINT)

    def end(self) -> None:
        """Wait until it has saved its run, then end it."""
        self.request_stop()
        while self.job and not self.dead:
            self.receive(lambda *_: None)
            self.request_stop()
        self.connection.close()
        self.process.join()


def _outcome_of_death(exit_code: int | None, job: Job) -> Outcome:
    resume = f"bgd resume {job.folder}"
    if exit_code in (-signal.SIGINT, -signal.SIGTERM):
        return Outcome(job, error=f"interrupted; continue with: {resume}", interrupted=True)
    reason = f"exit code {exit_code}"
    if exit_code is not None and exit_code < 0:
        reason = signal.Signals(-exit_code).name
        reason += ", perhaps for lack of memory" if reason == "SIGKILL" else ""
    return Outcome(job, error=f"its process died ({reason}); continue from its last checkpoint with: {resume}")


def _work(connection: Connection) -> None:
    """The loop of a worker process."""
    # between runs a signal may end the process: there is nothing to save
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with contextlib.suppress(EOFError, BrokenPipeError):
        connection.send(None)  # ready
        while True:
            job = connection.recv()
            own = replace(job, options=replace(job.options, ignore_second_signal=True))
            outcome = attempt(own, lambda progress: _send_or_stop(connection, progress))
            connection.send(replace(outcome, job=job))


def _send_or_stop(connection: Connection, progress: Progress) -> None:
    """Report the progress; where the parent has died, save the run and end, as at Ctrl-C."""
    try:
        connection.send(progress)
    except OSError:
        os.kill(os.getpid(), signal.SIGINT)


def _context() -> Any:
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver  # which Windows does not have

    context = multiprocessing.get_context("forkserver")
    # what this process has already imported is imported once by the server, rather than by every worker
    others = ("sklearn.datasets", "torch._dynamo")  # torch imports the latter with the first optimizer, for a second
    imported = [name for name in sys.modules if name.partition(".")[0] == "bgd" or name in others]
    context.set_forkserver_preload(imported)
    with _sigint_ignored():  # while the server imports, Ctrl-C is for this process alone
        forkserver.ensure_running()
    return context


@contextlib.contextmanager
def _sigint_ignored() -> Iterator[None]:
    """Processes started inside ignore SIGINT, until they set a handler."""
    if threading.current_thread() is not threading.main_thread():  # the only one that may set handlers
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _main_module_hidden() -> Iterator[None]:
    """Processes started inside do not import the user's script: they need nothing of it, and it may lack a guard."""
    main = sys.modules["__main__"]
    hidden: dict[str, Any] = {
        name: main.__dict__.pop(name) for name in ("__file__", "__spec__") if name in main.__dict__
    }
    main.__spec__ = None
    try:
        yield
    finally:
        del main.__spec__
        main.__dict__.update(hidden)
