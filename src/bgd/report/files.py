"""The files of a report: each is written whole, and those of an earlier report that are no longer made are removed."""

from __future__ import annotations

import contextlib
from pathlib import Path, PurePosixPath

from bgd.errors import BGDError
from bgd.files import write_atomically

LIST = ".bgd-report"
"""In the folder of a report: the paths of its files, a line each."""
ENDINGS = frozenset({".html", ".csv", ".json", ".txt", ".md", ".png", ".svg"})


class ReportError(BGDError):
    """A report that cannot be made or written: the message names the folder and the way out.

    >>> issubclass(ReportError, BGDError)
    True
    """


class ReportFolder:
    """Writes the files of one report into a folder.

    >>> import tempfile
    >>> folder = ReportFolder(Path(tempfile.mkdtemp()))
    >>> folder.write("a.txt", b"1"), folder.write("b/c.txt", b"2")
    (None, None)
    >>> folder.finish()
    >>> again = ReportFolder(folder.path)
    >>> again.write("a.txt", b"1"), again.finish()
    (None, None)
    >>> sorted(path.name for path in folder.path.iterdir())
    ['.bgd-report', 'a.txt']
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written: list[Path] = []

    def write(self, name: str, content: bytes) -> None:
        """Write a file by its path in the folder; one that holds this content already is left as it is."""
        path = self.path / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not (path.is_file() and path.read_bytes() == content):
                write_atomically(path, content)
        except OSError as error:
            raise ReportError(f"{path}: cannot write the report ({error.strerror}): choose another --out") from error
        self.written.append(path)

    def finish(self) -> None:
        """Remove what an earlier report has written and this one has not; then list this one's files.

        The list may be somebody else's: nothing outside the folder is removed, and nothing but kinds of files that a
        report writes.
        """
        names = {path.relative_to(self.path).as_posix() for path in self.written}
        for name in self._listed():
            path = PurePosixPath(name)
            if name in names or path.is_absolute() or ".." in path.parts or path.suffix not in ENDINGS:
                continue
            target = self.path / path
            if self.path.resolve() not in target.parent.resolve().parents and target.parent != self.path:
                continue
            with contextlib.suppress(OSError):
                target.unlink()
            for above in target.relative_to(self.path).parents:
                with contextlib.suppress(OSError):
                    (self.path / above).rmdir()  # where it is empty
        if names:
            lists = ReportFolder(self.path)
            lists.write(LIST, "".join(f"{name}\n" for name in sorted(names)).encode())

    def _listed(self) -> list[str]:
        try:
            return (self.path / LIST).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return []
