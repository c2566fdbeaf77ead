"""Read compressed files and archives in memory; nothing is ever extracted to disk."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib

DAMAGE = (OSError, EOFError, zlib.error, tarfile.TarError, KeyError)
"""What unpacking raises on a file that is truncated, damaged or something else."""

LARGEST = 2 << 30
"""Bytes of a file when unpacked: none that is published is larger, and a bomb would fill the memory."""


def gunzip(data: bytes) -> bytes:
    """Decompress what is compressed, recognised by its first bytes: servers and users rename freely.

    >>> gunzip(gzip.compress(b"pixels")), gunzip(b"pixels")
    (b'pixels', b'pixels')
    """
    if data[:2] != b"\x1f\x8b":
        return data
    with gzip.open(io.BytesIO(data)) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise OSError(f"more than {LARGEST:,} bytes when unpacked")
    return content


def read_members(archive: bytes, names: tuple[str, ...]) -> dict[str, bytes]:
    """Read the named regular files of a tar archive in one pass; nothing is written, no link is followed.

    Raises:
        KeyError: If one is missing, or is not a regular file.
    """
    spellings = {spelling: name for name in names for spelling in (name, name.removeprefix("./"))}
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if member.size > LARGEST:
                raise tarfile.TarError(f"{member.name} is larger than {LARGEST:,} bytes")
            if member.name in spellings and member.isreg() and (file := tar.extractfile(member)):
                found[spellings[member.name]] = file.read()
    if missing := [name for name in names if name not in found]:
        raise KeyError(f"no regular file {missing[0]} inside")
    return found
