"""What runs on the workers of a cluster, and on its board of progress."""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout

from bgd._version import __version__
from bgd.runs.executors.types import Job, Outcome, attempt

LEASE = 180.0  # seconds after which a network file system has released the lock of a node that died


@dataclass(frozen=True)
class Driver:
    """What a worker must share with the process that submits jobs, beside the file system."""

    folder: str
    variables: dict[str, str]
    versions: dict[str, str]


def describe_driver() -> Driver:
    """This process, as its workers need to know it.

    >>> describe_driver().versions["bgd"] == __version__
    True
    """
    return Driver(os.getcwd(), {k: v for k, v in os.environ.items() if k.startswith("BGD_")}, versions())


def versions() -> dict[str, str]:
    """Of the packages that bits depend on.

    >>> list(versions())
    ['bgd', 'torch', 'numpy']
    """
    return {"bgd": __version__, "torch": torch.__version__, "numpy": np.__version__}


def progress_board() -> type:
    """The class of the actor to which workers send their progress."""

    class Board:
        """The latest progress of each run. Made in a function, so that its process need not import torch."""

        def __init__(self) -> None:
            self.latest: dict[str, tuple[Any, ...]] = {}

        def put(self, folder: str, progress: tuple[Any, ...]) -> None:
            self.latest[folder] = progress

        def take(self) -> dict[str, tuple[Any, ...]]:
            latest, self.latest = self.latest, {}
            return latest

    return Board


def work(job: Job, driver: Driver, board: Any, retry: bool) -> Outcome:
    """Do one job on a worker, if its node fits the driver.

    Args:
        job: with absolute paths.
        driver: the process that submitted it.
        board: the actor for progress.
        retry: whether an earlier worker of the same run failed.
    """
    os.environ.update(driver.variables)
    with contextlib.suppress(OSError):  # relative names of data folders mean the same as in the driver
        os.chdir(driver.folder)
    if (error := _mismatch(job, driver)) is not None:
        return Outcome(job, error=error)
    if retry:
        _await_lock(job.folder)
    folder = str(job.folder)
    return attempt(job, lambda progress: board.put.remote(folder, tuple(progress)))


def _mismatch(job: Job, driver: Driver) -> str | None:
    node = platform.node() or "a node"
    if not (job.folder / "config.json").exists():
        return (
            f"{job.folder} does not exist on {node}: results must be on a file system that all nodes share; choose one "
            "with --out"
        )
    for name, version in versions().items():
        if version != driver.versions.get(name):
            return (
                f"{name} is {version} on {node}, but {driver.versions.get(name)} in the driver: install the same "
                "version on every node, or results would not be the same bits"
            )
    return None


def _await_lock(folder: Path) -> None:
    # a failed worker may live for a moment, and a network file system keeps the lock of a dead node for a while
    with contextlib.suppress(Timeout), FileLock(folder / ".lock", timeout=LEASE):
        pass
