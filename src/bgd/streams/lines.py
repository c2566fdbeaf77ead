"""Lines of CSV or JSON, from a file that grows or from standard input, as rows."""

from __future__ import annotations

import csv
import json
import math
import os
import queue
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from bgd.errors import BGDError

Row = dict[str, float | str | None]


class LineError(BGDError, ValueError):
    """A line that holds no row."""


class Line(NamedTuple):
    """A line as bytes, and the position in the source after it."""

    content: bytes
    end: int


class Source(Protocol):
    """Where lines come from."""

    def read(self, wait: float) -> Line | None:
        """The next whole line; None where there is none after so many seconds."""

    @property
    def ended(self) -> bool:
        """Whether no line will come any more."""

    def close(self) -> None:
        """Release the file."""


class GrowingFile:
    """The lines of a file from a position in bytes; more may be appended.

    Args:
        path: of the file.
        position: where to begin, as ``Line.end`` gave it.
        follow: wait for lines to come; else it ends at the end of the file, where a last line needs no newline.
    """

    def __init__(self, path: Path, position: int = 0, *, follow: bool = True) -> None:
        try:
            self.file: BinaryIO = path.open("rb")
        except OSError as error:
            raise BGDError(f"{path}: cannot be read ({error.strerror})") from None
        size = path.stat().st_size
        if position > size:
            self.file.close()
            raise BGDError(
                f"{path}: has {size} bytes, but {position} of them were read before: it was replaced; remove the "
                "checkpoint, or choose another folder for it"
            )
        self.file.seek(position)
        self.position, self.follow, self.ended = position, follow, False
        self._part = b""
        self._pause = threading.Event()

    def read(self, wait: float) -> Line | None:
        """The next line that ends with a newline."""
        self._part += self.file.readline()
        if not self._part.endswith(b"\n"):
            if self.follow:
                if os.fstat(self.file.fileno()).st_size < self.position:
                    raise BGDError(f"{self.file.name}: was cut at {self.position} bytes, while it was watched")
                self._pause.wait(wait)
                return None
            self.ended = True
            if not self._part:
                return None
        line, self._part = self._part, b""
        self.position += len(line)
        return Line(line, self.position)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class Pipe:
    """The lines of standard input; a thread reads them, so that nobody else waits. The position counts bytes."""

    def __init__(self, stream: BinaryIO, position: int = 0) -> None:
        self._lines: queue.Queue[bytes | None] = queue.Queue(maxsize=1000)
        self.position, self.ended = position, False
        threading.Thread(target=self._fill, args=(stream,), daemon=True).start()

    def _fill(self, stream: BinaryIO) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put(None)

    def read(self, wait: float) -> Line | None:
        """The next line."""
        try:
            line = self._lines.get(timeout=wait)
        except queue.Empty:
            return None
        if line is None:
            self.ended = True
            return None
        self.position += len(line)
        return Line(line, self.position)

    def close(self) -> None:
        """Standard input stays open."""


@dataclass
class Reader:
    """From lines to rows: JSON objects, or CSV whose first line names the columns; the first line decides.

    >>> reader = Reader()
    >>> [reader.row(line) for line in (b"t,sky,rain", b"1.5,grey,yes", b",blue,no")]
    [None, {'t': 1.5, 'sky': 'grey', 'rain': 'yes'}, {'t': None, 'sky': 'blue', 'rain': 'no'}]
    >>> Reader().row(b'{"t": 1.5, "dry": true}')
    {'t': 1.5, 'dry': 1.0}
    >>> reader.row(b"1.5,grey")
    Traceback (most recent call last):
    bgd.streams.lines.LineError: 2 values for 3 columns (t, sky, rain)
    """

    kind: str = ""
    header: list[str] | None = None

    def row(self, content: bytes) -> Row | None:
        """The row of a line; None for an empty line and for the header, which may come again.

        Raises:
            LineError: says what is wrong; nothing has changed.
        """
        try:
            text = content.decode("utf-8-sig").strip()
        except UnicodeDecodeError as error:
            raise LineError(f"no UTF-8 text ({error.reason} at byte {error.start})") from None
        if not text:
            return None
        kind = self.kind or ("json" if text.startswith("{") else "csv")
        row = _from_json(text) if kind == "json" else self._from_csv(text)
        self.kind = kind
        return row

    def _from_csv(self, text: str) -> Row | None:
        try:
            (cells,) = csv.reader([text], strict=True)
        except (csv.Error, ValueError) as error:
            raise LineError(f"no line of CSV: {error}") from None
        if self.header is None:
            if len(set(cells)) < len(cells):
                raise LineError(f"the first line must name the columns, each once, but it is {text[:60]!r}")
            self.header = cells
            return None
        if cells == self.header:
            return None
        if len(cells) != len(self.header):
            columns = ", ".join(self.header[:8])
            raise LineError(f"{len(cells)} values for {len(self.header)} columns ({columns})")
        return {name: _value(cell) for name, cell in zip(self.header, cells, strict=True)}


def _value(cell: str) -> float | str | None:
    """A number where it is one; None where it is empty."""
    cell = cell.strip()
    if not cell:
        return None
    if "_" in cell:  # Python would read 1_000 as a number
        return cell
    try:
        number = float(cell)
    except ValueError:
        return cell
    return None if math.isnan(number) else number


def _from_json(text: str) -> Row:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LineError(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise LineError(f"a JSON {type(found).__name__}, not an object")
    row: Row = {}
    for name, value in found.items():
        if not (value is None or isinstance(value, int | float | str)):
            raise LineError(f"{name!r} is a {type(value).__name__}: give a number, a text or null")
        try:
            number = float(value) if isinstance(value, int | float) else value
        except OverflowError:
            raise LineError(f"{name!r} is too large a number") from None
        row[name] = None if isinstance(number, float) and math.isnan(number) else number
    return row
