"""Where a run took place: versions, commit, threads, and how it was called."""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import torch

import bgd
from bgd._version import __version__
from bgd.data.sources import locate
from bgd.runs.result import Machine


def results_folder() -> Path:
    """Where runs go unless told otherwise: ``BGD_RUNS``, or ``runs`` in the package's own user folder.

    >>> results_folder().name
    'runs'
    """
    return Path(os.environ.get("BGD_RUNS") or locate.cache_folder() / "runs").expanduser()


@lru_cache(maxsize=1)
def commit() -> str | None:
    """The commit of the package's source, with ``+`` where files have changed since; None outside a checkout.

    >>> commit() is None or len(commit()) >= 40
    True
    """
    folder = Path(bgd.__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
        return done.stdout.strip()

    try:
        if not git("ls-files", "--", "__init__.py"):  # installed inside somebody else's repository
            return None
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", str(folder)) else "")
    except (OSError, subprocess.SubprocessError):
        return None


def describe(threads: int, data: str = "", code: str = "") -> Machine:
    """This machine, before the run has taken any time.

    ``data`` stands for the user's own arrays, if there are any, and ``code`` for the method's source.

    >>> describe(threads=1).versions["torch"] == torch.__version__
    True
    """
    return Machine(
        threads=threads,
        versions={
            "bgd": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        }
        | ({"data": data} if data else {})
        | ({"code": code} if code else {}),
        platform=f"{platform.platform(terse=True)}, {platform.machine()}, {os.cpu_count()} cores",
        commit=commit(),
        command=shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    )


@cache
def keep_memory() -> bool:
    """Let this process keep freed memory for its next tensors; returns whether its allocator, glibc's, is told to.

    By default large blocks go back to the kernel and come again as pages to be cleared: a quarter of the time of a
    batched BGD step at width 1000. A choice of the user's own (``MALLOC_...``, ``GLIBC_TUNABLES``) stands.

    >>> keep_memory() in (True, False)
    True
    """
    trim_threshold, mmap_threshold = -1, -3  # as malloc.h numbers them
    if any(name.startswith("MALLOC_") or "glibc.malloc" in value for name, value in os.environ.items()):
        return False
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018, nobody else's malloc has these numbers
    except (AttributeError, OSError, TypeError):
        return False
    kept = libc.mallopt(trim_threshold, 2**31 - 1)
    return bool(kept and (libc.mallopt(mmap_threshold, 2**30) or libc.mallopt(mmap_threshold, 2**25)))  # older: 32 MiB


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Inside, torch computes with so many threads: results are the same bits only for the same number.

    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
