"""The folder of a run: what is in it, and how it is written so that nothing can damage it.

    config.json         the resolved configuration
    environment.json    versions, commit, threads; at the end the machine time
    metrics.jsonl       one line for each thing measured, in order
    checkpoint-*.pt     the last two; the name holds the iteration and the hash of the content
    result.json         at the end, the same bytes however often the run was interrupted
    failure.txt         the traceback, if it failed

One process at a time (a lock that the system releases even after SIGKILL); files appear whole or not at all.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import torch
from filelock import FileLock, Timeout
from pydantic import ValidationError

from bgd.files import write_atomically
from bgd.runs.config import RunConfig
from bgd.runs.errors import RunError
from bgd.runs.result import Machine, RunResult

Model = TypeVar("Model", RunConfig, RunResult, Machine)

KEPT = 2
_CHECKPOINT = re.compile(r"checkpoint-(\d+)-([0-9a-f]{32})\.pt")


@contextmanager
def clear_errors(folder: Path) -> Iterator[None]:
    """Say plainly what the system's errors mean for a run: nothing is damaged, and how to go on.

    >>> with clear_errors(Path("runs/1")):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    bgd.runs.errors.RunError: runs/1: no space left on the disk. What was saved is whole: free some space, then go on \
with: bgd resume runs/1
    """
    try:
        yield
    except OSError as error:
        go_on = f"then go on with: bgd resume {folder}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise RunError(
                f"{folder}: no space left on the disk. What was saved is whole: free some space, {go_on}"
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT):
            raise RunError(
                f"{folder}: cannot write here ({os.strerror(error.errno)}): choose another folder with --out, "
                f"or make it writable, {go_on}"
            ) from error
        raise


class Metrics:
    """``metrics.jsonl``: appended line by line; a checkpoint notes how far it reached, a resume cuts it there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: list[dict[str, Any]] = []
        self._hash = hashlib.sha256()
        self._size = 0

    def mark(self) -> dict[str, int | str]:
        """How far the file has come, for a checkpoint; the bytes are on the disk before this returns."""
        if self._size:
            with self.path.open("rb+") as file:
                os.fsync(file.fileno())
        return {"bytes": self._size, "sha256": self._hash.hexdigest()}

    def holds(self, mark: dict[str, Any]) -> bool:
        """Whether the file still begins with what it held at the mark."""
        if not mark["bytes"]:
            return True
        if not self.path.is_file():
            return False
        with self.path.open("rb") as file:
            head = file.read(mark["bytes"])
        return hashlib.sha256(head).hexdigest() == str(mark["sha256"])

    def cut(self, mark: dict[str, Any] | None) -> None:
        """Go back to the mark (None: to the start), so that no line is lost and none comes twice."""
        size = mark["bytes"] if mark else 0
        with self.path.open("ab") as file:
            file.truncate(size)
        content = self.path.read_bytes()
        self.records = [json.loads(line) for line in content.splitlines()]
        self._hash, self._size = hashlib.sha256(content), size

    def add(self, kind: str, **values: Any) -> None:
        """Append one record."""
        record = {"kind": kind, **values}
        line = json.dumps(record).encode() + b"\n"
        with self.path.open("ab") as file:  # closed each time: there are few lines, and a reader may follow them
            file.write(line)
        self._hash.update(line)
        self._size += len(line)
        self.records.append(record)


class FolderInUse(RunError):
    """A folder in which another run, or another process, is at work: nothing may be written there."""


class RunFolder:
    """A run's folder, held by this process alone while it is open.

    >>> import tempfile
    >>> folder = RunFolder(Path(tempfile.mkdtemp()) / "run")
    >>> with folder.opened(RunConfig(method="sgd")):
    ...     folder.save(3, {"weights": torch.zeros(2)})
    ...     folder.load()["weights"]
    tensor([0., 0.])
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = Metrics(path / "metrics.jsonl")
        self.damaged: list[str] = []

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
                    f"{self.path}: another process is at work on this run: wait for it, or end it, then go on with: "
                    f"bgd resume {self.path}"
                ) from None
            try:
                for draft in self.path.glob("*.tmp"):  # of a process that was killed while it wrote
                    draft.unlink(missing_ok=True)
                yield self
            finally:
                lock.release()

    def checkpoints(self) -> list[Path]:
        """The checkpoints, newest first; not verified."""
        found = [path for path in self.path.glob("checkpoint-*.pt") if _CHECKPOINT.fullmatch(path.name)]
        return sorted(found, key=_iteration, reverse=True)

    def save(self, iteration: int, state: dict[str, Any]) -> None:
        """Write a checkpoint; only once it is on the disk, the oldest is removed."""
        buffer = io.BytesIO()
        torch.save({**state, "metrics": self.metrics.mark()}, buffer)
        content = buffer.getvalue()
        name = f"checkpoint-{iteration}-{hashlib.sha256(content).hexdigest()[:32]}.pt"
        write_atomically(self.path / name, content)
        others = [path for path in self.checkpoints() if path.name != name]
        for old in others[KEPT - 1 :]:
            old.unlink()

    def load(self) -> dict[str, Any] | None:
        """The last good checkpoint, or None: its hash is right, and the metrics it builds on are there.

        Those that are not good are removed, since they would stand in the way of new ones, and named in ``damaged``.
        """
        for path in self.checkpoints():
            content = path.read_bytes()
            if path.name.endswith(f"-{hashlib.sha256(content).hexdigest()[:32]}.pt"):
                # to the CPU, from where a learner takes its state: the GPU that wrote it may be another one, or full
                state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
                if self.metrics.holds(state["metrics"]):
                    return state
            path.unlink()
            self.damaged.append(path.name)
        return None

    def clear(self) -> None:
        """Forget all that was done here."""
        for name in ("result.json", "environment.json", "failure.txt", "metrics.jsonl"):
            (self.path / name).unlink(missing_ok=True)
        for checkpoint in self.checkpoints():
            checkpoint.unlink()

    def finish(self, result: RunResult, machine: Machine, keep: bool = False) -> None:
        """Write the result; from now on the run is done, and its checkpoints are not needed."""
        write_json(self.path / "environment.json", machine)
        write_json(self.path / "result.json", result)
        (self.path / "failure.txt").unlink(missing_ok=True)
        for checkpoint in self.checkpoints()[1 if keep else 0 :]:
            checkpoint.unlink()


def _iteration(path: Path) -> int:
    match = _CHECKPOINT.fullmatch(path.name)
    return int(match[1]) if match else -1


def write_json(path: Path, model: RunConfig | RunResult | Machine) -> None:
    """Write a model for people and programs to read; the machine is no part of a result file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "config.json"
    >>> write_json(path, RunConfig(method="sgd"))
    >>> read_config(path.parent).method
    'sgd'
    """
    if isinstance(model, RunResult):
        content = model.model_dump_json(exclude={"machine"})
    else:
        content = model.model_dump_json(indent=1)
    write_atomically(path, content.encode() + b"\n")


def prepare(path: Path, config: RunConfig) -> None:
    """Make the folder of a run that is planned; refuse one that holds another run.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run"
    >>> prepare(path, RunConfig(method="sgd"))
    >>> prepare(path, RunConfig(method="adam"))
    Traceback (most recent call last):
    bgd.runs.folder.FolderInUse: ...: this folder holds another run (sgd, seed 0): choose another folder
    """
    with clear_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        if not (path / "config.json").exists():
            write_json(path / "config.json", config)
    held = read_config(path)
    if held.digest != config.digest:
        raise FolderInUse(f"{path}: this folder holds another run ({held.title}): choose another folder")


def read_config(path: Path) -> RunConfig:
    """The configuration of a run."""
    return _read(path / "config.json", RunConfig)


def read_result(path: Path) -> RunResult:
    """The result of a finished run, from its folder or from one file, with the machine where it is known.

    >>> read_result(Path("no-such-run"))
    Traceback (most recent call last):
    bgd.runs.errors.RunError: no-such-run/result.json: not there: the run is not finished, go on with: bgd resume ...
    """
    if path.is_file():
        return _read(path, RunResult)
    result = _read(path / "result.json", RunResult)
    return result if result.machine else result.model_copy(update={"machine": read_machine(path)})


def read_machine(path: Path) -> Machine | None:
    """Where and how a run takes place; None before it has begun.

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
    """Of the traceback of a run that failed, or where to read it; empty where none did.

    >>> last_line(Path("no-such-run"))
    ''
    """
    failure = path / "failure.txt"
    if not failure.is_file():
        return ""
    lines = [line for line in failure.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else str(failure)


def write_failure(path: Path) -> Path | None:
    """Write the traceback of the error at hand to ``failure.txt`` in a run's folder; None where that fails too.

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
        hint = f": the run is not finished, go on with: bgd resume {path.parent}" if model is RunResult else ""
        raise RunError(f"{path}: not there{hint}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise RunError(
            f"{path}: not a {model.__name__} of this version: {where}: {first['msg']}. Move it away and run again"
        ) from error
