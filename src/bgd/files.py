"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


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
