"""Where the bytes of a data set come from, tried in order and checked before they are used.

1. The folder that the user names: an argument, or ``BGD_DATA``.
2. The cache: ``BGD_CACHE``, or ``bgd`` in the user's cache directory.
3. Mirrors over HTTP(S): the public ones, or those named by ``BGD_MIRROR`` (addresses separated by spaces,
   each with a folder per data set; empty for none).
4. Packages of registries, with their ordinary clients, where these are installed.

``BGD_OFFLINE=1`` leaves out 3 and 4.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bgd.data.extras import needs_extra
from bgd.data.sources.files import Checked, FileLocation, Status, check_files, find_locations
from bgd.data.sources.published import Content, Edition, Published
from bgd.data.types import DataError


@dataclass(frozen=True)
class Obtained:
    """The checked contents of an edition, where they come from, and whether they are the published ones."""

    edition: Edition
    contents: Mapping[str, Content]
    origin: str
    published: bool


def data_folder(data: str | Path | None = None) -> Path | None:
    """Return the folder that the user names, by argument or with ``BGD_DATA``; None if there is none.

    >>> data_folder("no/such/folder")
    Traceback (most recent call last):
    bgd.data.types.DataError: no/such/folder, named as the data folder, is not a folder
    """
    named = data or os.environ.get("BGD_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DataError(f"{folder}, named {'as the data folder' if data else 'by BGD_DATA'}, is not a folder")
    return folder


def cache_folder() -> Path:
    """Return the folder for fetched data: ``BGD_CACHE``, or ``bgd`` in the user's cache directory."""
    named = os.environ.get("BGD_CACHE")
    if not named:
        with needs_extra("pooch"):
            import pooch
        named = pooch.os_cache("bgd")
    return Path(named).expanduser()


def find_local(published: Published, data: str | Path | None = None) -> tuple[Path, FileLocation] | None:
    """Find a data set without network and without checking it: the folder that has it, the location in there."""
    for root in (data_folder(data), cache_folder()):
        if root is not None and (location := next(find_locations(published, root), None)):
            return root, location
    return None


def obtain(published: Published, data: str | Path | None = None) -> Obtained:
    """Get the checked contents of a data set from the first source that has them.

    Args:
        published: The data set.
        data: The folder that the user names; else ``BGD_DATA``.

    Raises:
        DataError: If a file in the user's folder is wrong, or no source has the data; names the way out.
    """
    tried: list[str] = []
    if folder := data_folder(data):
        if location := next(find_locations(published, folder), None):
            checked = check_files(location, folder)
            if problems := dict.fromkeys(item.problem for item in checked if item.problem):
                raise DataError("\n".join(problems))
            return _make_obtained(location, checked, f"folder {folder}")
        tried.append(f"folder {folder}: does not hold all its files")
    cache = cache_folder()
    # first without the lock: a cache that is complete may be read-only, and many may read it at once
    if cached := _read_cache(published, cache, tried):
        return cached
    if os.environ.get("BGD_OFFLINE", "0") not in ("", "0"):
        tried.append("mirrors and packages: not tried, since BGD_OFFLINE is set")
        raise DataError(_explain_missing(published, folder, cache, tried))
    if cached := _fetch_into_cache(published, cache, tried):
        return cached
    raise DataError(_explain_missing(published, folder, cache, tried))


def _fetch_into_cache(published: Published, cache: Path, tried: list[str]) -> Obtained | None:
    with needs_extra("requests"):  # or filelock, or rich
        from bgd.data.sources.fetch import fetch, hold_lock
    home = cache / published.folders[0]
    try:
        home.mkdir(parents=True, exist_ok=True)
        with hold_lock(home, published.name):
            # another process may have fetched it while this one waited
            source = None if (cached := _read_cache(published, cache, [])) else fetch(published, home, tried)
    except OSError as error:
        raise DataError(
            f"cannot keep {published.name} in the cache: {error}; name another folder with BGD_CACHE"
        ) from error
    if cached := cached or _read_cache(published, cache, []):
        return replace(cached, origin=source or cached.origin)
    return None


def _read_cache(published: Published, cache: Path, tried: list[str]) -> Obtained | None:
    problem = f"cache {cache}: does not hold all its files"
    for location in find_locations(published, cache):
        checked = check_files(location, cache)
        wrong = [item.path for item in checked if item.problem]
        if not wrong:
            return _make_obtained(location, checked, f"cache {cache}")
        problem = f"cache {cache}: {wrong[0]} is damaged, or not the published file"
    tried.append(problem)
    return None


def _make_obtained(location: FileLocation, checked: list[Checked], origin: str) -> Obtained:
    contents = {item.file.name: item.content for item in checked if item.content}
    published = all(item.status is Status.PUBLISHED for item in checked)
    return Obtained(location.edition, contents, origin, published)


def _explain_missing(published: Published, folder: Path | None, cache: Path, tried: list[str]) -> str:
    """Name exactly which file to put where."""
    name = published.folders[0]
    # the first edition whose files can be checked
    edition = next(e for e in published.editions if all(file.md5 for file in e.files))
    lines = [f"{published.name}: no source has it. Put these files"]
    lines += [f"  {file.name}{edition.suffix}  (unpacked md5 {file.md5})" for file in edition.files]
    lines += [f"or the archive {edition.archive} that holds them"] if edition.archive else []
    lines += [f"into {cache / name}"]
    lines += [f"or into {folder / name}" if folder else f"or into DIR/{name}, and name DIR with BGD_DATA or --data"]
    return "\n".join([*lines, "Tried:", *(f"  {line}" for line in tried)])
