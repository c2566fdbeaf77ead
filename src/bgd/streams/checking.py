"""What a saved learner must be, so that a file of anybody's is a learner or one clear error."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bgd.errors import BGDError
from bgd.files import UNREADABLE

FREE = "scaling"
"""Its arrays may hold what is not finite: that comes of values whose squares overflow, and is never used."""
SETTINGS = ("variance", "drift", "logistic")
"""Arrays that learning does not change."""
POSITIVE = ("weights", "shape", "rate", "std", "ceiling")
LARGEST = 1e30
LARGEST_DEEP = 1e6
"""No learner reaches it in what it knows of standardised rows and targets."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Inside, whatever does not fit is one error that names the file.

    >>> with reading(Path("a.bgd")):
    ...     {}["seed"]
    Traceback (most recent call last):
    bgd.errors.BGDError: a.bgd is not a learner that save() wrote (KeyError: 'seed'): use a copy, or learn again
    """
    try:
        yield
    except BGDError as error:
        if str(path) in str(error):
            raise
        raise _refused(path, str(error)) from error
    except OSError as error:
        raise BGDError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UNREADABLE as error:
        raise _refused(path, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}") from error


def check_header(header: Mapping[str, Any], numbers: int) -> None:
    """Refuse a header whose sizes and names cannot be those of a learner with so many numbers in its arrays.

    >>> check_header({"seed": 0, "outputs": -1, "seen": 3, "width": 2, "scale": 2, "columns": ["0", "1"]}, 100)
    Traceback (most recent call last):
    ValueError: 'outputs' is -1
    """
    columns, width = header["columns"], header["width"]
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise ValueError("'columns' is no list of names")
    bounds = {"seed": (0, 2**32), "outputs": (1, numbers), "seen": (1, 2**63), "scale": (1, 2**31)}
    for name, (low, high) in bounds.items():
        if type(header[name]) is not int or not low <= header[name] <= high:
            raise ValueError(f"{name!r} is {header[name]!r}")
    if not 0 < len(set(columns)) == len(columns) <= numbers:
        raise ValueError("'columns' is empty, too long, or names one twice")
    if width is not None:
        whole("width", width, len(columns))
        if columns[:width] != [str(i) for i in range(width)]:
            raise ValueError(f"'width' is {width!r}")


def finite(name: str, values: Any, count: int) -> list[float]:
    """So many finite numbers, or an error.

    >>> finite("finish", [0.0, None], 2)
    Traceback (most recent call last):
    ValueError: 'finish' is [0.0, None], not 2 finite numbers
    """
    good = isinstance(values, list) and len(values) == count and all(type(one) in (int, float) for one in values)
    if not good or not all(map(math.isfinite, values)):
        raise ValueError(f"{name!r} is {str(values)[:60]}, not {count} finite numbers")
    return [float(one) for one in values]


def whole(name: str, value: Any, most: float = math.inf) -> int:
    """A whole number from 0, or an error.

    >>> whole("count", -1)
    Traceback (most recent call last):
    ValueError: 'count' is -1, not a whole number from 0
    """
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{name!r} is {str(value)[:60]}, not a whole number from 0")
    return value


def check_arrays(found: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays of other names, shapes, types or settings than those of a new learner of this size, and NaN.

    >>> check_arrays({"weights": np.zeros(2)}, {"weights": np.zeros(3)})
    Traceback (most recent call last):
    ValueError: 'weights' is float64 (2,), not float64 (3,)
    """
    if wrong := found.keys() ^ expected.keys():
        raise ValueError(f"{sorted(wrong)[0]!r} is {'missing' if wrong & expected.keys() else 'unknown'}")
    for name, array in found.items():
        ours, (owner, _, part) = expected[name], name.rpartition(".")
        if array.shape != ours.shape or array.dtype != ours.dtype:
            raise ValueError(f"{name!r} is {array.dtype} {array.shape}, not {ours.dtype} {ours.shape}")
        bound = {"targets": np.inf, "deep": LARGEST_DEEP}.get(owner, LARGEST)
        if array.dtype.kind == "f" and owner != FREE and not (np.abs(array) < bound).all():
            raise ValueError(f"{name!r} holds NaN, infinity or a value that no learner reaches")
        if part == "calibration" and (np.abs(array) > 50).any():
            raise ValueError(f"{name!r} holds a value beyond 50")
        if part in SETTINGS and owner not in (FREE, "targets") and not np.array_equal(array, ours):
            raise ValueError(f"{name!r} differs from this version's members")
        if part in POSITIVE and not (array > 0).all():
            raise ValueError(f"{name!r} is not positive")


def _refused(path: Path, reason: str) -> BGDError:
    return BGDError(f"{path} is not a learner that save() wrote ({reason}): use a copy, or learn again")
