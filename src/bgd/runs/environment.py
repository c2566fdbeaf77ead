"""The machine that a run uses: versions, commit, cores, threads, memory, and how it was called."""

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
from threadpoolctl import threadpool_limits

from bgd._version import __version__
from bgd.data.sources import locate
from bgd.runs.result import Machine

THEN = ", then "  # between the versions of a run's sessions


def results_folder() -> Path:
    """Where runs go by default: ``BGD_RUNS``, or ``runs`` in the package's own user folder.

    >>> results_folder().name
    'runs'
    """
    return Path(os.environ.get("BGD_RUNS") or locate.cache_folder() / "runs").expanduser()


def available_cores() -> int:
    """The number of cores that this process may use.

    >>> available_cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def commit() -> str | None:
    """The commit of the package's source, with ``+`` where files have changed since; None outside a checkout.

    >>> commit() is None or len(commit()) >= 40
    True
    """
    folder = Path(__file__).parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        if not git("ls-files", "--", "__init__.py"):  # installed inside somebody else's repository
            return None
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", str(folder)) else "")
    except (OSError, subprocess.SubprocessError):
        return None


def describe(threads: int, data: str = "", code: str = "") -> Machine:
    """This machine, before the run has taken any time.

    Args:
        threads: of torch.
        data: digest of the user's own arrays, if there are any.
        code: digest of the code of the run.

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
        command=shlex.join([_program(Path(sys.argv[0])), *sys.argv[1:]]),
    )


def _program(path: Path) -> str:
    """What to type: ``python -m bgd`` is the command, too.

    >>> _program(Path("site-packages/bgd/__main__.py")), _program(Path("own.py"))
    ('bgd', 'own.py')
    """
    return "bgd" if path.name == "__main__.py" and path.parent.name in ("bgd", "cli") else path.name


def join_versions(before: Machine, now: Machine) -> dict[str, str]:
    """The versions of all sessions of a run: bits depend on them, and those of a mixed run are unlike any other's.

    >>> first, second = (Machine(versions={"torch": version}, threads=1) for version in ("2.12", "2.13"))
    >>> join_versions(first, second)
    {'torch': '2.12, then 2.13'}
    """
    versions = now.versions | {"threads": str(now.threads)}
    earlier = {"threads": str(before.threads)} | before.versions
    joined = {key: _then(earlier.get(key, value), value) for key, value in versions.items()}
    return {key: value for key, value in joined.items() if key != "threads" or THEN in value}


def _then(before: str, now: str) -> str:
    return before if before.split(THEN)[-1] == now else f"{before}{THEN}{now}"


@cache
def keep_memory() -> bool:
    """Let this process keep freed memory for its next tensors; returns whether its allocator, glibc's, does so.

    By default large blocks go back to the kernel and return as pages to be cleared: a quarter of the time of a
    batched BGD step at width 1000. The user's own choice (``MALLOC_...``, ``GLIBC_TUNABLES``) overrides this.

    >>> keep_memory() in (True, False)
    True
    """
    trim_threshold, mmap_threshold = -1, -3  # as malloc.h numbers them
    if any(name.startswith("MALLOC_") or "glibc.malloc" in value for name, value in os.environ.items()):
        return False
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018, other malloc libraries do not have these numbers
    except (AttributeError, OSError, TypeError):
        return False
    kept = libc.mallopt(trim_threshold, 2**31 - 1)
    return bool(kept and (libc.mallopt(mmap_threshold, 2**30) or libc.mallopt(mmap_threshold, 2**25)))  # older: 32 MiB


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """Inside, torch and numpy compute with ``count`` threads: results are the same bits only for the same number.

    >>> with limited_threads(1):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)
