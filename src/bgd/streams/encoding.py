"""From tables of any kind to rows of numbers, with a vocabulary that grows as features appear.

Numbers go on a running standardisation (:mod:`bgd.streams.scaling`). Of the rest, each ``feature=value`` gets a column
of 0 and 1, as does each feature that was ever missing (NaN, None). A feature that a row lacks is 0: its mean. The
vocabulary has room for ``ROOM`` columns; later ones share ``SHARED`` columns by a hash. All columns of an array are
numbers.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bgd.errors import SettingError
from bgd.streams.scaling import Array, Scaling, empty, observe, standardise, widen

ROOM = 960
SHARED = 64


@dataclass(frozen=True)
class Table:
    """Rows to learn: an array of numbers, or records."""

    numbers: Array | None
    records: Sequence[Mapping[Any, Any]] = ()

    def __len__(self) -> int:
        return len(self.records) if self.numbers is None else len(self.numbers)

    def __getitem__(self, part: slice) -> Table:
        if self.numbers is None:
            return Table(None, self.records[part])
        return Table(self.numbers[part])

    def copy(self) -> Table:
        """The same rows, whatever happens to the caller's."""
        if self.numbers is None:
            return Table(None, [dict(row) for row in self.records])
        return Table(self.numbers.copy())

    def take(self, rows: Sequence[int]) -> Table:
        """These rows."""
        if self.numbers is None:
            return Table(None, [self.records[i] for i in rows])
        return Table(self.numbers[list(rows)])

    def same(self, other: Table) -> bool:
        """Whether both hold the same rows."""
        if self.numbers is None or other.numbers is None:
            return self.numbers is other.numbers and self.records == other.records
        return self.numbers.shape == other.numbers.shape and self.numbers.tobytes() == other.numbers.tobytes()


def read_table(x: Any) -> Table:
    """Rows of an array, a sparse matrix, a DataFrame, or dicts.

    >>> read_table([[1, 2]]).numbers
    array([[1., 2.]])
    >>> read_table([{"a": 1, "b": "red"}]).records
    [{'a': 1, 'b': 'red'}]
    """
    if (records := read_records(x)) is not None:
        return Table(None, records)
    x = np.asarray(x.toarray() if hasattr(x, "toarray") else x)
    if x.ndim != 2:
        raise SettingError(
            f"expected rows of features, a 2D array, got one of shape {x.shape}. Reshape your data: "
            "x.reshape(1, -1) is one row, x.reshape(-1, 1) is one feature"
        )
    return Table(x.astype(np.float64))


def read_records(x: Any) -> list[Mapping[Any, Any]] | None:
    """The rows of what has names or categories: dicts, DataFrames with other columns than numbers, arrays with strings.

    >>> read_records(np.array([[1, "red"]], dtype=object))
    [{0: 1, 1: 'red'}]
    >>> read_records(np.ones((1, 1)))
    """
    if hasattr(x, "toarray"):  # sparse; one kind of it is a dict
        return None
    if isinstance(x, Mapping):
        raise SettingError("one dict is one row: pass a list of dicts, as [row]")
    if isinstance(x, list | tuple) and x and isinstance(x[0], Mapping):
        return list(x)
    if hasattr(x, "dtypes") and hasattr(x, "itertuples"):
        if all(getattr(kind, "kind", "O") in "biuf" for kind in x.dtypes):
            return None
        return frame_records(x)
    if isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype.kind in "OUS":
        for value in x.flat:
            if not isinstance(value, str | int | float | bool | bytes | np.generic | None):
                raise TypeError(f"argument must be a string or a number, got {value!r} of type {type(value).__name__}")
        try:
            x.astype(np.float64)
        except (TypeError, ValueError):
            return [dict(enumerate(row)) for row in x.tolist()]
    return None


def frame_records(frame: Any) -> list[Mapping[Any, Any]]:
    """The rows of a DataFrame."""
    names = list(frame.columns)
    return [dict(zip(names, row, strict=True)) for row in frame.itertuples(index=False, name=None)]


@dataclass
class Encoder:
    """The vocabulary and the scaling; ``width`` is the number of columns of an array, None for records.

    >>> encoder = Encoder()
    >>> encoder.learn(encoder.read(read_table([{"a": 1.0, "c": "red"}, {"a": 3.0}]), grow=True))
    >>> encoder.encode(encoder.read(read_table([{"a": 2.0, "c": "red", "new": 7}]))).tolist()
    [[0.0, 1.0]]
    """

    width: int | None = None
    scale: int = 0
    """The number of features of the first batch."""
    columns: dict[str, int] = field(default_factory=dict)
    indicator: np.ndarray[Any, np.dtype[np.bool_]] = field(default_factory=lambda: np.zeros(0, bool))
    scaling: Scaling = field(default_factory=lambda: empty(0))

    def check(self, table: Table) -> None:
        """Refuse rows that do not fit those before, and infinity.

        >>> encoder = Encoder()
        >>> _ = encoder.read(read_table([[1.0, 2.0]]), grow=True)
        >>> encoder.check(read_table([[1.0]]))
        Traceback (most recent call last):
        bgd.errors.SettingError: X has 1 features, but this learner is expecting 2 features as input: ...
        """
        if table.numbers is not None:
            features = table.numbers.shape[1]
            if not math.isfinite(table.numbers.sum()) and np.isinf(table.numbers).any():
                row, column = np.argwhere(np.isinf(table.numbers))[0]
                raise SettingError(f"infinity in row {row}, column {column}: clip it, or pass NaN for a missing value")
            if self.scale and self.width is None:
                raise SettingError("this learner has learnt records (dicts, DataFrames): pass records, not arrays")
            if self.scale and features != self.width:
                raise SettingError(
                    f"X has {features} features, but this learner is expecting {self.width} features as input: pass "
                    "dicts or DataFrames where features come and go"
                )
            return
        if self.width is not None:
            raise SettingError("this learner has learnt arrays: pass arrays, not records")
        for i, row in enumerate(table.records):
            for name, value in row.items():
                if isinstance(value, float | np.floating) and math.isinf(value):
                    raise SettingError(f"infinity in row {i}, feature {name!r}: clip it, or pass None if it is missing")

    def read(self, table: Table, grow: bool = False) -> Array:
        """Raw values (B, columns), NaN where missing; ``grow`` adds what is new to the vocabulary."""
        if table.numbers is not None:
            return self._read_numbers(table.numbers, grow)
        cells = [self._cells(row, grow) for row in table.records]
        x = np.where(self.indicator, 0.0, np.full((len(cells), len(self.indicator)), np.nan))
        for i, row in enumerate(cells):
            for column, value in row:
                x[i, column] = value if self.indicator[column] or np.isnan(x[i, column]) else x[i, column] + value
        if grow and not self.scale:
            self.scale = max(len({str(name) for row in table.records for name in row}), 1)
        return x

    def _read_numbers(self, numbers: Array, grow: bool) -> Array:
        missing = np.isnan(numbers)
        if grow and not self.scale:
            self.width, self.scale = numbers.shape[1], numbers.shape[1]
            for j in range(numbers.shape[1]):
                self._add(str(j), False)
        if grow and missing.any():
            for j in np.flatnonzero(missing.any(0)).tolist():
                if (name := f"{j} is missing") not in self.columns and len(self.columns) < (self.width or 0) + ROOM:
                    self._add(name, True)
        if len(self.columns) == self.width:
            return numbers
        flags = [int(name.partition(" ")[0]) for name in list(self.columns)[self.width :]]
        return np.concatenate([numbers, missing[:, flags].astype(np.float64)], 1)

    def _cells(self, row: Mapping[Any, Any], grow: bool) -> list[tuple[int, float]]:
        """(column, value) of each feature of a record that the vocabulary has."""
        found = []
        for name in sorted(row, key=str):
            text, number, indicator = _meaning(name, row[name])
            column = self.columns.get(text)
            if column is None and len(self.columns) >= ROOM:
                text, indicator = f"shared {zlib.crc32(text.encode()) % SHARED}", False
                column = self.columns.get(text)
            if column is None and grow:
                column = self._add(text, indicator)
            if column is not None:
                found.append((column, number))
        return found

    def _add(self, name: str, indicator: bool) -> int:
        self.columns[name] = len(self.columns)
        self.indicator = np.append(self.indicator, indicator)
        self.scaling = widen(self.scaling, len(self.columns))
        return self.columns[name]

    def learn(self, x: Array) -> None:
        """Update the scaling."""
        self.scaling = observe(self.scaling, x)

    def encode(self, x: Array) -> Array:
        """Rows on the scale, with the columns of the vocabulary."""
        if not self.indicator.any():
            return standardise(self.scaling, x)
        return np.where(self.indicator, x, standardise(self.scaling, x))


def _meaning(name: object, value: object) -> tuple[str, float, bool]:
    """The column's name, the number in it, and whether it is one of 0 and 1."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return f"{name} is missing", 1.0, True
    if isinstance(value, int | float | np.number | np.bool_):
        return str(name), float(value), False
    if type(value).__name__ in ("NAType", "NaTType"):
        return f"{name} is missing", 1.0, True
    return f"{name}={value}", 1.0, True
