"""A cluster of ours whose head dies: one line and a clean end. Ray itself would end the process after a minute."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from filelock import FileLock, Timeout

PREFIX = "bgd-ray-"
LOCK = ".bgd-lock"
TICK = 0.3  # seconds between two looks at the head
NEW = 60.0  # seconds in which whoever makes a folder has locked it
MESSAGE = (
    "bgd: the head of the Ray cluster was ended from outside, and the runs with it: give the same command again, or "
    "bgd resume, to continue each from its last checkpoint"
)


@contextmanager
def cluster_folder(parent: str | None = None) -> Iterator[Path]:
    """A temporary folder for a cluster; folders that killed processes have left behind are removed first.

    >>> with cluster_folder() as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    remove_leftovers(Path(parent or tempfile.gettempdir()))
    with (
        tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent, ignore_cleanup_errors=True) as folder,
        FileLock(Path(folder, LOCK)),
    ):
        yield Path(folder)


def remove_leftovers(parent: Path) -> None:
    """Remove the folders of clusters whose process has ended; the lock of one that lives is held.

    >>> remove_leftovers(Path("/no/such/folder"))
    """
    for lock in parent.glob(f"{PREFIX}*/{LOCK}"):
        with contextlib.suppress(Timeout, OSError):
            if time.time() - lock.stat().st_mtime > NEW:
                with FileLock(lock, timeout=0):
                    shutil.rmtree(lock.parent, ignore_errors=True)


@contextmanager
def watched(ray: Any, folder: Path) -> Iterator[None]:
    """Inside, the end of the cluster's head ends this process with one line, and the cluster with it."""
    node = getattr(ray._private.worker, "_global_node", None)
    processes = [one.process for kind in getattr(node, "all_processes", {}).values() for one in kind]
    heads = [one.process for one in getattr(node, "all_processes", {}).get("gcs_server", ())]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(TICK):
            if any(head.poll() is not None for head in heads):
                _end(processes, folder)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _end(processes: list[Any], folder: Path) -> NoReturn:
    """Workers end with their raylet; nothing of Ray can be asked to, since it would wait for its head."""
    try:
        for process in processes:
            with contextlib.suppress(OSError):
                process.kill()
        shown = "\x1b[?25h" if sys.stderr.isatty() else ""  # the cursor, which the display of progress hides
        print(f"{shown}{MESSAGE}", file=sys.stderr, flush=True)
        for _ in range(20):  # workers that are about to end may still write
            shutil.rmtree(folder, ignore_errors=True)
            time.sleep(0.1)
    finally:
        os._exit(1)
