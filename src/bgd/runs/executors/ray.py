"""Runs on a Ray cluster: one that is there, or a small one on this machine for as long as it is needed.

A job is done by the same function as everywhere else, so it gives the same result file. Whatever becomes of a worker
or its node, the run's folder holds the last checkpoint and the system frees the folder's lock: doing the job again
goes on from there. Hence the folder must be on a file system that all nodes share.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import socket
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout

from bgd._version import __version__
from bgd.runs.errors import RunError
from bgd.runs.executors.local import Job, Outcome, ProgressCallback, attempt
from bgd.runs.folder import RunFolder, prepare, write_failure
from bgd.runs.run import Progress
from bgd.runs.stop import StopRequest, stop_requests

LOSSES = 3  # workers in a row that a run may lose without getting further
TICK = 0.2  # seconds between two looks at what the workers say
GRACE = 60.0  # seconds for runs to save themselves when the caller has lost interest
LEASE = 180.0  # seconds after which a network file system has taken the lock from a node that died
STORE = 100 * 2**20  # bytes of shared memory of our own cluster: jobs and results are small

logger = logging.getLogger(__name__)


class OnRay:
    """Each run a task on a Ray cluster; one whose worker or node is lost goes on elsewhere from its last checkpoint.

    Args:
        count: runs at a time; 0 for as many as the cluster has cores for.
        address: of a running cluster, such as ``10.0.0.5:6379`` or ``auto``; else ``RAY_ADDRESS``; without either, a
            cluster of this machine alone is started, reachable from this machine alone, and ended with the last run.

    Raises:
        RunError: if Ray is not installed.
    """

    def __init__(self, count: int = 0, address: str | None = None) -> None:
        self.ray = load_ray()
        self.count = count
        self.address = address or os.environ.get("RAY_ADDRESS") or "local"

    def __call__(self, jobs: Sequence[Job], progress: ProgressCallback) -> Iterator[Outcome]:
        """Do the jobs."""
        tasks = [_Task(job, resources(job)) for job in jobs]
        for task in list(tasks):
            try:
                prepare(task.job.folder, task.job.config)
            except RunError as error:
                tasks.remove(task)
                yield Outcome(task.job, error=str(error), traceback=write_failure(task.job.folder))
        if not tasks:
            return
        with self._cluster(jobs) as cluster, stop_requests(patient=True) as wish:
            _warn_of_small_nodes(cluster, max(task.needs["num_cpus"] for task in tasks))
            yield from _Tasks(cluster, self.count or len(tasks), wish).do(tasks, progress)

    @contextmanager
    def _cluster(self, jobs: Sequence[Job]) -> Iterator[Any]:
        ray = self.ray
        if ray.is_initialized():  # by the program that calls us: it stays as it is
            yield ray
            return
        # for clusters that we start: neither report home nor hide GPUs from tasks that ask for none
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        with ExitStack() as stack:
            stack.enter_context(_signals_kept())
            # news of lost nodes would go to stdout, which is for results
            stack.enter_context(_replaced("ray._private.worker", "print_to_stdstream", _log))
            if self.address == "local":
                # short, since sockets have their place in it, and the system limits the length of their names
                short = "/tmp" if Path("/tmp").is_dir() else None
                folder = stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="bgd-ray-", dir=short, ignore_cleanup_errors=True)
                )
                stack.callback(ray.shutdown)
                # Ray's switch for systems whose firewall asks; one node needs no other address on any system
                with _replaced("ray._private.ray_constants", "ENABLE_RAY_CLUSTER", False):
                    ray.init(
                        address="local",
                        num_cpus=slots(jobs, self.count),
                        object_store_memory=STORE,
                        include_dashboard=False,
                        _temp_dir=folder,
                        **quiet,
                    )
            else:
                stack.callback(ray.shutdown)
                try:
                    if self.address != "auto":
                        check_reachable(self.address)
                    ray.init(address=self.address, **quiet)
                except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
                    raise RunError(
                        f"no Ray cluster at {self.address!r} ({error}): start one with ray start --head, and give its "
                        "address with --ray-address or RAY_ADDRESS; without either, one is started on this machine"
                    ) from error
            yield ray


def load_ray() -> Any:
    """Ray, which is an extra.

    Raises:
        RunError: if it is not installed; says how to install it.

    >>> import pytest
    >>> _ = pytest.importorskip("ray")
    >>> callable(load_ray().init)
    True
    """
    try:
        importlib.import_module("ray.util.scheduling_strategies")
        return importlib.import_module("ray")
    except ImportError as error:
        raise RunError(
            f'Ray is not installed ({error}): pip install "bgd[ray]", or choose another --executor'
        ) from error


def check_reachable(address: str) -> None:
    """See at once whether there is anything at an address; Ray itself would try for minutes.

    Raises:
        RunError: if it is no address of a cluster.
        OSError: if nothing answers.

    >>> check_reachable("localhost")
    Traceback (most recent call last):
    bgd.runs.errors.RunError: Ray address 'localhost': give an address such as 10.0.0.5:6379, or auto
    """
    if address.startswith("ray://"):
        raise RunError(
            f"Ray address {address!r}: the Ray Client is not supported; start bgd on a node of the cluster, and give "
            "the address of the cluster itself, or auto"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise RunError(f"Ray address {address!r}: give an address such as 10.0.0.5:6379, or auto")
    socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def resources(job: Job) -> dict[str, int]:
    """What a job asks of the node that does it.

    >>> from bgd.runs.run import Options
    >>> from bgd.runs.config import RunConfig
    >>> resources(Job(RunConfig(method="sgd"), Path("x"), Options(threads=4)))
    {'num_cpus': 4}
    >>> resources(Job(RunConfig(method="sgd", device="cuda"), Path("x")))
    {'num_cpus': 1, 'num_gpus': 1}
    """
    device = job.config.device
    if device.startswith("cuda:"):
        raise RunError(f"device {device!r}: Ray gives each run a GPU of its own, which it sees as 'cuda': ask for that")
    return {"num_cpus": job.options.threads} | ({"num_gpus": 1} if device == "cuda" else {})


def slots(jobs: Sequence[Job], count: int) -> int:
    """Cores to offer on a cluster of our own: for ``count`` runs at a time, else all there are, at least for one run.

    >>> from bgd.runs.run import Options
    >>> from bgd.runs.config import RunConfig
    >>> jobs = 3 * [Job(RunConfig(method="sgd"), Path("x"), Options(threads=2))]
    >>> slots(jobs, count=2), slots(jobs, count=100)
    (4, 6)
    """
    threads = max(job.options.threads for job in jobs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count or max(1, cores // threads), len(jobs)) * threads


def _warn_of_small_nodes(ray: Any, cores: int) -> None:
    # no error: more nodes may join, and a cluster that grows on demand may have none yet
    if not any(node["Alive"] and node["Resources"].get("CPU", 0) >= cores for node in ray.nodes()):
        warnings.warn(f"no node of the Ray cluster has {cores} cores: runs wait until one joins", stacklevel=2)


@contextmanager
def _replaced(module: str, name: str, value: Any) -> Iterator[None]:
    """Inside, a name of Ray's own has another value: for what it has no option for. Unknown names are left alone."""
    where = importlib.import_module(module)
    if not hasattr(where, name):
        yield
        return
    before = getattr(where, name)
    setattr(where, name, value)
    try:
        yield
    finally:
        setattr(where, name, before)


def _log(data: dict[str, Any], **_: Any) -> None:
    logger.info("Ray says: %s", " ".join(data["lines"]))


@contextmanager
def _signals_kept() -> Iterator[None]:
    # Ray takes SIGTERM and does not give it back
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass
class _Task:
    """A job on its way, and how often it was lost since it last got further."""

    job: Job
    needs: dict[str, int]
    losses: int = 0
    newest: Path | None = None
    cancelled: bool = False


class _Tasks:
    """The tasks of one call of the executor."""

    def __init__(self, ray: Any, count: int, wish: StopRequest) -> None:
        self.ray, self.count, self.wish = ray, count, wish
        self.working: dict[Any, _Task] = {}
        self.remote = ray.remote(_work)
        near = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self.board = ray.remote(_board()).options(num_cpus=0, scheduling_strategy=near).remote()
        self.news = self.board.take.remote()

    def do(self, waiting: list[_Task], progress: ProgressCallback) -> Iterator[Outcome]:
        """All of them, as the executor's protocol says."""
        try:
            while self.working or (waiting and not self.wish.stop):
                while waiting and len(self.working) < self.count and not self.wish.stop:
                    self.submit(waiting.pop(0))
                if self.wish.stop:
                    self.cancel()
                ended, _ = self.ray.wait(list(self.working), num_returns=1, timeout=TICK)
                self.tell(progress)
                for reference in ended:
                    outcome = self.hear(self.working.pop(reference), reference)
                    if outcome is not None:
                        yield outcome
        finally:
            self.cancel()
            if self.working:
                self.ray.wait(list(self.working), num_returns=len(self.working), timeout=GRACE)
            self.ray.kill(self.board)

    def submit(self, task: _Task) -> None:
        # retrying is ours: Ray would not know whether the run got further, nor wait for the lost worker's lock
        remote = self.remote.options(max_retries=0, name=f"bgd {task.job.config.title}", **task.needs)
        distant = replace(task.job, folder=task.job.folder.absolute(), options=_patient(task.job))
        here = _Here(os.getcwd(), {k: v for k, v in os.environ.items() if k.startswith("BGD_")}, _versions())
        self.working[remote.remote(distant, here, self.board, again=task.losses > 0)] = task

    def cancel(self) -> None:
        """Ask all to stop: Ray raises SIGINT's handler in the worker, and the run saves itself as always."""
        for reference, task in self.working.items():
            if not task.cancelled:
                task.cancelled = True
                self.ray.cancel(reference)

    def tell(self, progress: ProgressCallback) -> None:
        """Pass on what the workers have said since the last time."""
        if not self.ray.wait([self.news], timeout=0)[0]:
            return
        with contextlib.suppress(self.ray.exceptions.RayError):  # without a board there is no progress, but results
            news = self.ray.get(self.news)
            for task in self.working.values():
                if (said := news.get(str(task.job.folder.absolute()))) is not None:
                    progress(task.job, Progress(*said))
        self.news = self.board.take.remote()

    def hear(self, task: _Task, reference: Any) -> Outcome | None:
        """What became of a task; None if it has been lost and submitted again, or stopped before it began."""
        errors, job = self.ray.exceptions, task.job
        try:
            outcome: Outcome = self.ray.get(reference)
        except errors.TaskCancelledError:
            if task.cancelled:  # waiting, or no further than the checkpoint that it would have gone on from
                return None
            return self.lost(task, "cancelled by someone else")
        except errors.RayTaskError as error:
            # not the run's own error, of which there would be an outcome
            reason = f"its worker could not begin ({error.cause}): bgd must be installed on every node"
            return Outcome(job, error=reason, traceback=write_failure(job.folder))
        except errors.RayError as error:
            return self.lost(task, f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")
        if outcome.interrupted and not task.cancelled:  # a node that is going down asks its workers to end
            return self.lost(task, "ended by its node")
        return replace(outcome, job=job, traceback=outcome.traceback and job.folder / outcome.traceback.name)

    def lost(self, task: _Task, reason: str) -> Outcome | None:
        """Go on from the last checkpoint, unless the run does not get further any more."""
        job = task.job
        if task.cancelled:
            return Outcome(job, error=f"interrupted; go on with: bgd resume {job.folder}", interrupted=True)
        newest = next(iter(RunFolder(job.folder).checkpoints()), None)
        task.losses = task.losses + 1 if newest == task.newest else 1
        task.newest = newest
        if task.losses > LOSSES:
            return Outcome(
                job,
                error=f"lost worker after worker, {task.losses} without getting further ({reason}); it can go on from "
                f"its last checkpoint with: bgd resume {job.folder}",
            )
        logger.info("%s: worker lost (%s), going on from %s", job.config.title, reason, newest or "the start")
        self.submit(task)
        return None


def _patient(job: Job) -> Any:
    return replace(job.options, patient=True)


def _versions() -> dict[str, str]:
    return {"bgd": __version__, "torch": torch.__version__, "numpy": np.__version__}


def _board() -> type:
    class Board:
        """Where workers note how far they are. Made in a function, so that its process need not import torch."""

        def __init__(self) -> None:
            self.notes: dict[str, tuple[Any, ...]] = {}

        def note(self, folder: str, place: tuple[Any, ...]) -> None:
            self.notes[folder] = place

        def take(self) -> dict[str, tuple[Any, ...]]:
            notes, self.notes = self.notes, {}
            return notes

    return Board


# --- on the worker


@dataclass(frozen=True)
class _Here:
    """What a worker must share with the process that asks, beside the file system."""

    folder: str
    variables: dict[str, str]
    versions: dict[str, str]


def _work(job: Job, here: _Here, board: Any, again: bool) -> Outcome:
    os.environ.update(here.variables)
    with contextlib.suppress(OSError):  # relative names of data folders mean the same as there
        os.chdir(here.folder)
    if (wrong := _mismatch(job, here)) is not None:
        return Outcome(job, error=wrong)
    if again:
        _await_lock(job.folder)
    folder = str(job.folder)
    return attempt(job, lambda place: board.note.remote(folder, tuple(place)))


def _mismatch(job: Job, here: _Here) -> str | None:
    node = os.uname().nodename if hasattr(os, "uname") else "a node"
    if not (job.folder / "config.json").exists():
        return (
            f"{job.folder} is not there on {node}: results must be on a file system that all nodes share; choose one "
            "with --out"
        )
    for name, version in _versions().items():
        if version != here.versions.get(name):
            return (
                f"{name} is {version} on {node}, but {here.versions.get(name)} here: install the same version on every "
                "node, or results would not be the same bits"
            )
    return None


def _await_lock(folder: Path) -> None:
    # a lost worker may live for a moment more, and a network file system keeps the lock of a dead node for a while
    with contextlib.suppress(Timeout), FileLock(folder / ".lock", timeout=LEASE):
        pass
