"""Files that are written whole or not at all, and arrays in a file in which nothing can run."""

from __future__ import annotations

import io
import os
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNREADABLE = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RuntimeError,  # a member that is encrypted, or of an unknown compression; JSON that is nested too deeply
    EOFError,
    OSError,
    zipfile.BadZipFile,
)
"""What a file that anybody may have written raises where it is read."""


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or, whatever happens meanwhile, as it was before.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.json"
    >>> write_atomically(path, b"{}")
    >>> path.read_bytes(), os.listdir(path.parent)
    (b'{}', ['a.json'])
    """
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays as the content of an ``.npz`` file: not compressed, and never pickled.

    >>> unpack_arrays(pack_arrays({"a": np.arange(3)}))
    {'a': array([0, 1, 2])}
    """
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name!r} holds objects, which only a pickle could save")
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # its option allow_pickle would be an array in numpy 1.26
    return buffer.getvalue()


def unpack_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of :func:`pack_arrays`; members that are packed, and may be bombs, are refused before they are read.

    >>> np.savez_compressed(buffer := io.BytesIO(), a=np.zeros(9))
    >>> unpack_arrays(buffer.getvalue())
    Traceback (most recent call last):
    ValueError: a.npy is packed
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{member.filename} is packed")
        if sum(member.file_size for member in archive.infolist()) > len(content):  # they may overlap
            raise ValueError("its arrays are larger than the file")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)
