"""Find the files of a data set under a folder, and verify them.

A file is right if its *unpacked* content has the published md5. One that differs is the user's own decision: it
is accepted if a ``SHA256SUMS`` beside it, or in a folder above, lists it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bgd.data.sources.archives import DAMAGE, gunzip, read_members
from bgd.data.sources.published import Content, Edition, File, Published


class Status(StrEnum):
    """The result of checking a file's bytes."""

    PUBLISHED = "published"
    """Its content has the published hash."""
    LISTED = "listed"
    """Not the published content, but a SHA256SUMS lists it."""
    UNKNOWN = "unknown"
    """Not the published content, and no SHA256SUMS lists it."""
    DAMAGED = "damaged"
    """It cannot be unpacked, or its hash is not the one in SHA256SUMS."""


@dataclass(frozen=True)
class Checked:
    """A file that was found, with its content unless it is damaged, and what is wrong with it if anything."""

    file: File
    path: Path
    status: Status
    content: Content | None
    problem: str = ""


@dataclass(frozen=True)
class FileLocation:
    """Where the files of an edition are: a path for each, or one archive for all."""

    edition: Edition
    paths: Mapping[str, Path]
    archive: Path | None = None


def find_locations(published: Published, root: Path, complete: bool = True) -> Iterator[FileLocation]:
    """Find the folders under ``root`` that hold every file (or any) of an edition, preferred editions first."""
    for edition in published.editions:
        for folder in published.folders:
            base = root / folder
            # at the root itself a bare name such as "train" may mean anything
            candidates = [] if folder == "." and edition.folder else [base]
            candidates += [base / edition.folder] if edition.folder else []
            for candidate in candidates:
                paths = {file.name: path for file in edition.files if (path := find_file(candidate, file.name))}
                if len(paths) == len(edition.files) or (paths and not complete):
                    yield FileLocation(edition, paths)
            if edition.archive and (archive := base / edition.archive).is_file():
                yield FileLocation(edition, {file.name: archive for file in edition.files}, archive)


def find_file(folder: Path, name: str) -> Path | None:
    """Find a file under the spellings in use: compressed, or as ``train-images.idx3-ubyte``."""
    dotted = name.replace("-idx", ".idx")
    paths = (folder / spelling for spelling in (name, f"{name}.gz", dotted, f"{dotted}.gz"))
    return next((path for path in paths if path.is_file()), None)


def check_files(location: FileLocation, root: Path) -> list[Checked]:
    """Read and check every file of a location; ``root`` bounds the search for a ``SHA256SUMS``."""
    edition, archive = location.edition, location.archive
    if archive is None:
        found = [file for file in edition.files if file.name in location.paths]
        return [check_file(file, location.paths[file.name], root) for file in found]
    try:
        raw = archive.read_bytes()
        members = unpack(edition, raw)
    except DAMAGE as error:
        problem = f"{archive}: truncated or damaged: {error}"
        return [Checked(file, archive, Status.DAMAGED, None, problem) for file in edition.files]
    return [
        _verify(file, archive, raw, Content(f"{archive}:{file.name}", members[file.name]), root)
        for file in edition.files
    ]


def check_file(file: File, path: Path, root: Path) -> Checked:
    """Read and check one file, compressed or not."""
    try:
        raw = path.read_bytes()
        return _verify(file, path, raw, Content(str(path), gunzip(raw)), root)
    except DAMAGE as error:
        return Checked(file, path, Status.DAMAGED, None, f"{path}: truncated or damaged: {error}")


def unpack(edition: Edition, archive: bytes) -> dict[str, bytes]:
    """Read an edition's files out of its archive."""
    inside = {f"{edition.folder}/{file.name}": file.name for file in edition.files}
    return {inside[path]: data for path, data in read_members(archive, tuple(inside)).items()}


def md5_of(data: bytes) -> str:
    """Return the hash by which publishers identify these files; it is no defence against a forger.

    >>> md5_of(b"")
    'd41d8cd98f00b204e9800998ecf8427e'
    """
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _verify(file: File, path: Path, raw: bytes, content: Content, root: Path) -> Checked:
    md5 = md5_of(content.data)
    if md5 == file.md5:
        return Checked(file, path, Status.PUBLISHED, content)
    sums, listed = _find_listed_sha256(path, root)
    if listed is None:
        known = f"not the published file (md5 {md5}, published {file.md5})" if file.md5 else "no hash is published"
        way_out = f"To use it as it is, list it: cd '{path.parent}' && sha256sum '{path.name}' >> SHA256SUMS"
        return Checked(file, path, Status.UNKNOWN, content, f"{content.where}: {known}. {way_out}")
    sha256 = hashlib.sha256(raw).hexdigest()
    if sha256 != listed:
        problem = f"{path}: damaged: {sums} lists sha256 {listed}, the file has {sha256}"
        return Checked(file, path, Status.DAMAGED, None, problem)
    return Checked(file, path, Status.LISTED, content)


def _find_listed_sha256(path: Path, root: Path) -> tuple[Path, str | None]:
    """Find the sha256 that a SHA256SUMS lists for a file, from the file's folder up to ``root``."""
    folder = path.parent
    while True:
        sums = folder / "SHA256SUMS"
        if sums.is_file():
            for line in sums.read_text(errors="replace").splitlines():
                digest, _, name = line.partition(" ")
                if name and folder / name.lstrip(" *") == path:
                    return sums, digest.lower()
        if folder in (root, folder.parent):
            return sums, None
        folder = folder.parent
