"""The folder of a run: what is in it, and how it is written so that nothing can damage it.

    config.json         the resolved configuration
    environment.json    versions, commit, threads; at the end the machine time
    metrics.jsonl       one line for each measurement, in order
    checkpoint-*.pt     the last two; the name holds the iteration and the hash of the content
    result.json         at the end, the same bytes however often the run was interrupted
    SHA256SUMS          digests of the files above, as the run left them
    failure.txt         the traceback, if it failed

One process at a time (a lock that the system releases even after SIGKILL); files appear whole or not at all.
"""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout
from pydantic import ValidationError

from bgd.files import write_atomically
from bgd.runs import digests
from bgd.runs.checkpoints import Checkpoints
from bgd.runs.config import RunConfig
from bgd.runs.errors import DamagedRun, FolderInUse, RunError
from bgd.runs.metrics_file import MetricsFile
from bgd.runs.result import Machine, RunResult

Model = TypeVar("Model", RunConfig, RunResult, Machine)


@contextmanager
def clear_errors(folder: Path) -> Iterator[None]:
    """Explain what the system's errors mean for a run: nothing is damaged, and how to continue.

    >>> with clear_errors(Path("runs/1")):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    bgd.runs.errors.RunError: runs/1: no space left on the disk. What was saved is intact: free some space, then \
continue with: bgd resume runs/1
    """
    try:
        yield
    except OSError as error:
        resume = f"then continue with: bgd resume {folder}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise RunError(
                f"{folder}: no space left on the disk. What was saved is intact: free some space, {resume}"
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT):
            raise RunError(
                f"{folder}: cannot write here ({os.strerror(error.errno)}): choose another folder with --out, "
                f"or make it writable, {resume}"
            ) from error
        raise


class RunFolder:
    """A run's folder, locked by this process while it is open.

    >>> import tempfile
    >>> folder = RunFolder(Path(tempfile.mkdtemp()) / "run")
    >>> with folder.opened(RunConfig(method="sgd")):
    ...     folder.metrics.add("loss", iteration=1, loss=0.5)
    ...     folder.checkpoints.save(3, {"iteration": 3})
    ...     folder.checkpoints.load()["iteration"]
    3
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = MetricsFile(path / "metrics.jsonl")
        self.checkpoints = Checkpoints(path, self.metrics)

    @contextmanager
    def opened(self, config: RunConfig) -> Iterator[RunFolder]:
        """Hold the lock; refuse a folder that another process holds, or that holds another run."""
        with clear_errors(self.path):
            prepare(self.path, config)
            lock = FileLock(self.path / ".lock", timeout=0)
            try:
                lock.acquire()
            except Timeout:
                raise FolderInUse(
                    f"{self.path}: another process is at work on this run: wait for it, or end it, then continue with: "
                    f"bgd resume {self.path}"
                ) from None
            try:
                for draft in self.path.glob("*.tmp"):  # of a process that was killed while it wrote
                    draft.unlink(missing_ok=True)
                yield self
            finally:
                lock.release()

    def clear(self) -> None:
        """Remove everything but the configuration."""
        for name in ("result.json", digests.FILE, "environment.json", "failure.txt", "metrics.jsonl"):
            (self.path / name).unlink(missing_ok=True)
        self.checkpoints.remove()

    def finish(self, result: RunResult, machine: Machine, keep: bool = False) -> None:
        """Write the result; from now on the run is done, and its checkpoints are not needed."""
        write_json(self.path / "environment.json", machine)
        content = to_json(result)
        digests.write_digests(self.path, content)
        write_atomically(self.path / "result.json", content)
        (self.path / "failure.txt").unlink(missing_ok=True)
        self.checkpoints.remove(keep=1 if keep else 0)


def prepare(path: Path, config: RunConfig) -> None:
    """Make the folder of a planned run; refuse one that holds another run.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run"
    >>> prepare(path, RunConfig(method="sgd"))
    >>> prepare(path, RunConfig(method="adam"))
    Traceback (most recent call last):
    bgd.runs.errors.FolderInUse: ...: this folder holds another run (sgd, seed 0): choose another folder
    """
    with clear_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        if not (path / "config.json").exists():
            _write_first_config(path / "config.json", config)
    held = read_config(path)
    if held.digest != config.digest:
        raise FolderInUse(f"{path}: this folder holds another run ({held.title}): choose another folder")


def _write_first_config(path: Path, config: RunConfig) -> None:
    """Before the lock is held: another process may write it too, and remove our draft once it has the lock."""
    try:
        write_json(path, config)
    except FileNotFoundError:
        if not path.exists():
            raise


def write_json(path: Path, model: RunConfig | RunResult | Machine) -> None:
    """Write a model for people and programs to read; the machine is no part of a result file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "config.json"
    >>> write_json(path, RunConfig(method="sgd"))
    >>> read_config(path.parent).method
    'sgd'
    """
    write_atomically(path, to_json(model))


def to_json(model: RunConfig | RunResult | Machine) -> bytes:
    """The content of a model's file.

    >>> to_json(Machine(threads=2)).splitlines()[5]
    b' "threads": 2,'
    """
    if isinstance(model, RunResult):
        content = model.model_dump_json(exclude={"machine"})
    else:
        content = model.model_dump_json(indent=1)
    return content.encode() + b"\n"


def read_config(path: Path) -> RunConfig:
    """The configuration of a run.

    >>> read_config(Path("no-such-run"))
    Traceback (most recent call last):
    bgd.runs.errors.RunError: no-such-run/config.json: no such file
    """
    return _read(path / "config.json", RunConfig)


def read_result(path: Path) -> RunResult:
    """The result of a finished run, with the machine where it is known.

    >>> read_result(Path("no-such-run"))
    Traceback (most recent call last):
    bgd.runs.errors.RunError: no-such-run/result.json: no such file: the run is not finished, continue with: bgd ...
    """
    digests.check_digests(path)
    result = _read(path / "result.json", RunResult)
    return result if result.machine else result.model_copy(update={"machine": read_machine(path)})


def read_machine(path: Path) -> Machine | None:
    """The machine and versions of a run; None before it has begun.

    >>> read_machine(Path("no-such-run")) is None
    True
    """
    return _read(path / "environment.json", Machine) if (path / "environment.json").exists() else None


def finished(path: Path) -> bool:
    """Whether a run has its result.

    >>> finished(Path("no-such-run"))
    False
    """
    return (path / "result.json").is_file()


def last_line(path: Path) -> str:
    """Of the traceback of a failed run, or where to read it; empty for a run that has not failed.

    >>> last_line(Path("no-such-run"))
    ''
    """
    failure = path / "failure.txt"
    if not failure.is_file():
        return ""
    lines = [line for line in failure.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else str(failure)


def write_failure(path: Path) -> Path | None:
    """Write the traceback of the current exception to ``failure.txt`` in a run's folder; None where that fails too.

    >>> import tempfile
    >>> try:
    ...     raise ValueError("lr=-1")
    ... except ValueError:
    ...     print(write_failure(Path(tempfile.mkdtemp())).read_text().splitlines()[-1])
    ValueError: lr=-1
    """
    with suppress(OSError):  # a full disk may be the very reason
        path.mkdir(parents=True, exist_ok=True)
        file = path / "failure.txt"
        file.write_text(traceback.format_exc())
        return file
    return None


def _read(path: Path, model: type[Model]) -> Model:
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        hint = f": the run is not finished, continue with: bgd resume {path.parent}" if model is RunResult else ""
        raise RunError(f"{path}: no such file{hint}") from None
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"])) or "the file"
        raise DamagedRun(
            f"{path}: not a {model.__name__} of this version: {location}: {first['msg']}. Move it away and run again"
        ) from error
    except OSError as error:  # such as a folder of that name
        raise DamagedRun(f"{path}: cannot be read ({error.strerror}): move it away and run again") from error
