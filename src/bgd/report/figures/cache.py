"""Figures as bytes, drawn once: the cache is keyed by a digest of all that decides how a figure looks."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from bgd.data.sources import cache_folder
from bgd.errors import BGDError
from bgd.files import write_atomically
from bgd.report.figures.types import Plot

WORTH_PROCESSES = 16
"""Fewer figures than this are drawn sooner than worker processes have started."""
KEPT_DAYS = 60
"""A figure that no report has used for so long is removed."""


def render(plots: Sequence[Plot], file_format: str, processes: int = 1) -> list[bytes]:
    """Every figure as a file, in order: from the cache, or drawn and kept there.

    A cache that cannot be read or written costs time and nothing else; a damaged file in it counts as none.

    Args:
        plots: what to draw.
        file_format: ``"svg"`` or ``"png"``.
        processes: at most so many draw at the same time. More than one needs a main module that can be imported again,
            as the command's can.

    >>> render([], "svg")
    []
    """
    keys = [digest(plot, file_format) for plot in plots]
    folder = _folder()
    found = {key: content for key in dict.fromkeys(keys) if (content := _read(folder, key)) is not None}
    missing = {key: plot for key, plot in zip(keys, plots, strict=True) if key not in found}
    if missing:
        drawn = _draw_all(list(missing.values()), file_format, processes)
        found |= dict(zip(missing, drawn, strict=True))
        _keep(folder, {key: found[key] for key in missing})
    return [found[key] for key in keys]


def digest(plot: Plot, file_format: str) -> str:
    """Of all that decides how a figure looks: its function and arguments, this package's code, matplotlib.

    >>> one, two = (Plot("a", "", "", "", partial(print, text)) for text in "xy")
    >>> digest(one, "svg") == digest(one, "svg"), digest(one, "svg") == digest(two, "svg")
    (True, False)
    """
    return hashlib.sha256(repr((_code_digest(), file_format, _plain(plot.draw))).encode()).hexdigest()


def _plain(value: object) -> object:
    """A value as nested tuples whose text is complete and the same in every process."""
    if isinstance(value, partial):
        return value.func.__module__, value.func.__qualname__, _plain(value.args), _plain(value.keywords)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__qualname__, *(_plain(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, Mapping):
        return tuple((_plain(key), _plain(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    return value


@cache
def _code_digest() -> str:
    """Of the files that draw, and of matplotlib's version."""
    code = hashlib.sha256(version("matplotlib").encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        code.update(path.read_bytes())
    return code.hexdigest()


def _folder() -> Path | None:
    """Of the cache; None where there cannot be one."""
    try:
        return cache_folder() / "figures"
    except (BGDError, OSError):
        return None


def _read(folder: Path | None, key: str) -> bytes | None:
    """A kept figure; None if there is none, or a damaged one."""
    if folder is None:
        return None
    try:
        mark, _, content = (folder / key).read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if mark == _mark(content) else None


def _keep(folder: Path | None, drawn: Mapping[str, bytes]) -> None:
    """Keep new figures, and remove those that have not been needed for long."""
    if folder is None:
        return
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for key, content in drawn.items():
            write_atomically(folder / key, _mark(content) + b"\n" + content)
        oldest = time.time() - KEPT_DAYS * 86_400
        for path in folder.iterdir():
            if max(path.stat().st_atime, path.stat().st_mtime) < oldest:
                path.unlink(missing_ok=True)


def _mark(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _draw_all(plots: Sequence[Plot], file_format: str, processes: int) -> list[bytes]:
    draw = partial(_draw, file_format=file_format)
    if processes < 2 or len(plots) < WORTH_PROCESSES:
        return [draw(plot) for plot in plots]
    # not fork: a copy of a process whose threads have computed may wait for them for ever
    context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(["bgd.report", "matplotlib.figure"])
    try:
        with ProcessPoolExecutor(min(processes, len(plots)), context) as pool:
            return list(pool.map(draw, plots, chunksize=2))
    except (OSError, BrokenProcessPool):  # no semaphores here, or no memory for another process
        return [draw(plot) for plot in plots]


def _draw(plot: Plot, file_format: str) -> bytes:
    from bgd.report.figures.save import png, svg

    figure = plot.figure
    return png(figure) if file_format == "png" else svg(figure).encode()
