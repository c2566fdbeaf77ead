"""``SHA256SUMS`` in the folder of a finished run: changes to its files since then are noticed.

The format is that of ``sha256sum``, so that ``sha256sum -c SHA256SUMS`` checks it too.
"""

from __future__ import annotations

import hashlib
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
    contents["result.json"] = result
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items())
    write_atomically(folder / FILE, "".join(lines).encode())


def check_digests(folder: Path) -> None:
    """Refuse a finished run whose files have changed since; one of a version without digests passes.

    >>> check_digests(Path("no-such-run"))
    """
    try:
        lines = (folder / FILE).read_bytes().splitlines()
    except FileNotFoundError:
        return
    known = dict(line.split(b"  ", 1)[::-1] for line in lines if line.count(b"  ") == 1)
    if len(known) != len(lines) or b"result.json" not in known or not known.keys() <= {n.encode() for n in COVERED}:
        raise _damaged(folder, FILE, "is no list of digests")
    for name, digest in known.items():
        path = folder / name.decode()
        if not path.is_file():
            raise _damaged(folder, path.name, "is missing")
        if hashlib.sha256(path.read_bytes()).hexdigest().encode() != digest:
            raise _damaged(folder, path.name, "has changed since the run ended")


def _damaged(folder: Path, name: str, how: str) -> DamagedRun:
    return DamagedRun(
        f"{folder / name} {how}: restore it, or remove {folder / 'result.json'} and run again with: bgd resume {folder}"
    )
