"""``metrics.jsonl``: one line for each measurement, in order."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any


class MetricsFile:
    """Appended line by line; a checkpoint stores its length and hash, and resuming truncates it to that length.

    >>> import tempfile
    >>> file = MetricsFile(Path(tempfile.mkdtemp()) / "metrics.jsonl")
    >>> file.add("loss", iteration=1, loss=0.5)
    >>> mark = file.mark()
    >>> file.add("loss", iteration=2, loss=0.4)
    >>> file.truncate(mark)
    >>> file.records
    [{'kind': 'loss', 'iteration': 1, 'loss': 0.5}]
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: list[dict[str, Any]] = []
        self._hash = hashlib.sha256()
        self._size = 0

    def mark(self) -> dict[str, int | str]:
        """Length and hash of the file, for a checkpoint; the bytes are on the disk before this returns."""
        if self._size:
            with self.path.open("rb+") as file:
                os.fsync(file.fileno())
        return {"bytes": self._size, "sha256": self._hash.hexdigest()}

    def matches(self, mark: dict[str, Any]) -> bool:
        """Whether the file still begins with what it held at the mark."""
        if not mark["bytes"]:
            return True
        if not self.path.is_file():
            return False
        with self.path.open("rb") as file:
            head = file.read(mark["bytes"])
        return hashlib.sha256(head).hexdigest() == str(mark["sha256"])

    def truncate(self, mark: dict[str, Any] | None) -> None:
        """Go back to the mark (None: to the start), so that no line is missing and none comes twice."""
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
