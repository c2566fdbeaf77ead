"""A folder of ``.npz`` arrays."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bgd.data.formats.arrays import make_data_set, make_part
from bgd.data.types import DataError, DataSet

_IMAGES, _LABELS = ("images", "x", "X", "data"), ("labels", "y", "targets")


def from_npz(folder: str | Path, name: str | None = None) -> DataSet:
    """Read a data set of the user's own from a folder of ``.npz`` arrays.

    Either ``train.npz`` and ``test.npz``, each with ``images`` (or ``x``) and ``labels`` (or ``y``), or one
    file with ``x_train``, ``y_train``, ``x_test``, ``y_test``. Images are (N, H, W), (N, C, H, W),
    (N, H, W, C) with 1 or 3 channels, or (N, D) for plain features, which become (N, 1, 1, D); integers of 0
    to 255, or floats. An array ``classes`` may hold the names of the classes; else they are numbers. Nothing is
    unpickled.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for which in ("train", "test"):
    ...         np.savez(f"{folder}/{which}.npz", images=np.zeros((4, 8, 8), np.uint8), labels=[0, 1, 0, 1])
    ...     own = from_npz(folder, name="own")
    >>> own.name, tuple(own.train.images.shape), own.classes
    ('own', (4, 1, 8, 8), ('0', '1'))

    Args:
        folder: The folder.
        name: The name of the data set; else the folder's name.

    Raises:
        DataError: If a file or an array is missing or wrong; names it.
    """
    folder = Path(folder).expanduser()
    halves = [folder / "train.npz", folder / "test.npz"]
    single = sorted(folder.glob("*.npz"))
    if all(path.is_file() for path in halves):
        arrays = [_read_arrays(path) for path in halves]
        parts = [
            make_part(str(path), _pick(path, a, _IMAGES), _pick(path, a, _LABELS))
            for path, a in zip(halves, arrays, strict=True)
        ]
        classes = arrays[0].get("classes")
    elif len(single) == 1:
        both = _read_arrays(single[0])
        parts = [
            make_part(f"{single[0]} ({w})", _pick(single[0], both, (f"x_{w}",)), _pick(single[0], both, (f"y_{w}",)))
            for w in ("train", "test")
        ]
        classes = both.get("classes")
    else:
        raise DataError(
            f"{folder}: needs train.npz and test.npz (images, labels), or one .npz file "
            f"(x_train, y_train, x_test, y_test); "
            f"found {', '.join(path.name for path in single) or 'no .npz file'}"
        )
    names = None if classes is None else [_decode_text(entry) for entry in classes.reshape(-1)]
    return make_data_set(name or folder.resolve().name, parts, names)


def _decode_text(entry: Any) -> str:
    return entry.decode() if isinstance(entry, bytes) else str(entry)


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        # numpy leaves a file open that is no zip archive
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except (OSError, ValueError, EOFError, KeyError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: not a readable .npz file of plain arrays ({error})") from error


def _pick(path: Path, arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> NDArray[Any]:
    for name in names:
        if name in arrays:
            return arrays[name]
    raise DataError(f"{path}: no array named {' or '.join(names)}; it has {', '.join(arrays) or 'none'}")
