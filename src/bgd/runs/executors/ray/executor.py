"""The executor: each run is a task on a Ray cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from bgd.runs.errors import RunError
from bgd.runs.executors.ray.cluster import connected, load_ray
from bgd.runs.executors.ray.scheduling import Scheduler, Task, resources, slots
from bgd.runs.executors.types import Job, Outcome, ProgressCallback
from bgd.runs.folder import prepare, write_failure
from bgd.runs.own_modules import check_importable
from bgd.runs.stop import stop_requests


class OnRay:
    """Each run a task on a Ray cluster; if its worker or node fails, it continues elsewhere from its last checkpoint.

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
        check_importable((job.config for job in jobs), "a Ray worker")
        tasks = [Task(job, resources(job)) for job in jobs]
        for task in list(tasks):
            try:
                prepare(task.job.folder, task.job.config)
            except RunError as error:
                tasks.remove(task)
                yield Outcome(task.job, error=str(error), traceback=write_failure(task.job.folder))
        if not tasks:
            return
        with (
            connected(self.ray, self.address, slots(jobs, self.count)),
            stop_requests(ignore_second_signal=True) as stop,
        ):
            _warn_of_small_nodes(self.ray, max(task.resources["num_cpus"] for task in tasks))
            yield from Scheduler(self.ray, self.count or len(tasks), stop).run(tasks, progress)


def _warn_of_small_nodes(ray: Any, cores: int) -> None:
    # no error: more nodes may join, and a cluster that grows on demand may have none yet
    if not any(node["Alive"] and node["Resources"].get("CPU", 0) >= cores for node in ray.nodes()):
        warnings.warn(f"no node of the Ray cluster has {cores} cores: runs wait until one joins", stacklevel=2)
