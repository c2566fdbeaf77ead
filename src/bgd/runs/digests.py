"""``SHA256SUMS`` beside the files of a finished run, and of packed ones: changes to them since then are noticed.

The format is that of ``sha256sum``, so that ``sha256sum -c SHA256SUMS`` checks it too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

from bgd.files import write_atomically
from bgd.runs.errors import DamagedRun

FILE = "SHA256SUMS"
COVERED = ("config.json", "environment.json", "metrics.jsonl", "result.json")


def write_digests(folder: Path, result: bytes) -> None:
    r"""Write the digests of a run's files, and of the result that is to be written next.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_digests(folder, b"{}")
    >>> (folder / FILE).read_text()[-14:]
    '  result.json\n'
    """
    contents = {name: (folder / name).read_bytes() for name in COVERED[:-1] if (folder / name).is_file()}
    _write(folder, _lines(contents | {"result.json": result}))


def check_digests(folder: Path) -> None:
    """Refuse a finished run whose files have changed since; one of a version without digests passes.

    >>> check_digests(Path("no-such-run"))
    """
    if (folder / FILE).is_file():
        way_out = f"restore it, or remove {folder / 'result.json'} and run again with: bgd resume {folder}"
        check_files(folder, ("result.json",), COVERED, "since the run ended", way_out)


def replace_files(folder: Path, contents: Mapping[str, bytes], covered: Collection[str]) -> None:
    r"""Write files and the list of the digests of those ``covered``; ended at any time, each file fits the list.

    Until all are written, the list has two lines for a file: of what it was, and of what it will be.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> replace_files(folder, {"runs.jsonl": b"{}\n"}, ["runs.jsonl"])
    >>> (folder / FILE).read_text()[-13:]
    '  runs.jsonl\n'
    """
    kept = {name: (folder / name).read_bytes() for name in covered if (folder / name).is_file()}
    after = {name: content for name, content in (kept | dict(contents)).items() if name in covered}
    _write(folder, list(dict.fromkeys([*_lines(kept), *_lines(after)])))
    for name, content in contents.items():
        write_atomically(folder / name, content)
    _write(folder, _lines(after))


def check_files(folder: Path, needed: Collection[str], covered: Collection[str], how: str, way_out: str) -> None:
    """Refuse files that differ from the folder's list, a list that lacks one of those ``needed``, or is none.

    >>> check_files(Path("no-such-folder"), ("runs.jsonl",), ("runs.jsonl",), "since then", "restore it")
    Traceback (most recent call last):
    bgd.runs.errors.DamagedRun: no-such-folder/SHA256SUMS is missing: restore it
    """
    if not (folder / FILE).is_file():
        raise DamagedRun(f"{folder / FILE} is missing: {way_out}")
    lines = (folder / FILE).read_bytes().splitlines()
    pairs = [(line[66:].decode(errors="replace"), line[:64].decode(errors="replace")) for line in lines]
    if {line[64:66] for line in lines} != {b"  "} or not set(needed) <= {name for name, _ in pairs} <= set(covered):
        raise DamagedRun(f"{folder / FILE} is no list of digests: {way_out}")
    for name in dict.fromkeys(name for name, _ in pairs):
        if not (folder / name).is_file():
            raise DamagedRun(f"{folder / name} is missing: {way_out}")
        if (name, _digest((folder / name).read_bytes())) not in pairs:
            raise DamagedRun(f"{folder / name} has changed {how}: {way_out}")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _lines(contents: Mapping[str, bytes]) -> list[str]:
    return [f"{_digest(content)}  {name}\n" for name, content in contents.items()]


def _write(folder: Path, lines: list[str]) -> None:
    write_atomically(folder / FILE, "".join(lines).encode())
