"""A package of a user's own, on sys.path or installed with entry points."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bgd import plugins


@contextmanager
def own_package(
    folder: Path, code: str, entry_points: dict[str, dict[str, str]] | None = None, name: str = "ownpackage"
) -> Iterator[str]:
    """Inside, the module ``name`` with this code can be imported; yields its name.

    Args:
        folder: an empty folder, for its files.
        code: of the module.
        entry_points: by group, what the package declares when it is installed.
        name: of the module.
    """
    (folder / f"{name}.py").write_text(code)
    if entry_points:
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [
            line
            for group, points in entry_points.items()
            for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))
        ]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    sys.path.insert(0, str(folder))
    _forget(name)  # other tests may have had a package of this name
    importlib.invalidate_caches()
    plugins._installed.cache_clear()
    try:
        yield name
    finally:
        sys.path.remove(str(folder))
        _forget(name)
        plugins._installed.cache_clear()


def _forget(name: str) -> None:
    for module in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        del sys.modules[module]
