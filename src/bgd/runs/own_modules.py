"""The user's own modules behind a configuration: a method, a net, data or a loss given as ``module:attribute``."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bgd.runs.config import RunConfig
from bgd.runs.data import data_names
from bgd.runs.errors import RunError

SPEC = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")
"""``module:attribute``; no folder of data looks like this."""


class OwnModule(NamedTuple):
    """A module given as ``module:attribute``.

    Attributes:
        name: of the module.
        attribute: of the object in it.
    """

    name: str
    attribute: str


def own_modules(config: RunConfig) -> list[OwnModule]:
    """The modules that a configuration names, each attribute once.

    >>> own_modules(RunConfig(method="tether:Tether", setup={"net": {"name": "mypackage.nets:build"}}))
    [OwnModule(name='tether', attribute='Tether'), OwnModule(name='mypackage.nets', attribute='build')]
    """
    setup = config.setup
    specs = [config.method, setup.net.name, *data_names(setup.data), *filter(None, [setup.loss])]
    return list(dict.fromkeys(OwnModule(*match.groups()) for spec in specs if (match := SPEC.fullmatch(spec))))


def in_main(config: RunConfig) -> list[str]:
    """What a configuration takes from the running script or notebook, which only this process can run.

    >>> in_main(RunConfig(method="__main__:Tether")), in_main(RunConfig(method="tether:Tether"))
    (['__main__:Tether'], [])
    """
    return [f"{name}:{attribute}" for name, attribute in own_modules(config) if name == "__main__"]


def check_importable(configs: Iterable[RunConfig], where: str) -> None:
    """Refuse runs whose code another process cannot import.

    >>> check_importable([RunConfig(method="__main__:Tether")], "a worker process")
    Traceback (most recent call last):
    bgd.runs.errors.RunError: '__main__:Tether' is defined in the running script or notebook, where a worker process \
cannot import it: move it to a module, or run in this process
    """
    for config in configs:
        for spec in in_main(config):
            raise RunError(
                f"{spec!r} is defined in the running script or notebook, where {where} cannot import it: move it to a "
                "module, or run in this process"
            )


def module_file(name: str) -> Path | None:
    """The source of an imported module; None where there is none to read.

    >>> module_file("bgd.runs.own_modules").name
    'own_modules.py'
    """
    file = getattr(sys.modules.get(name), "__file__", None)
    return Path(file) if file and file.endswith(".py") else None


def import_folder(name: str, file: Path) -> Path:
    """The folder from which a module is imported: that of its top-level package or module.

    >>> import_folder("a.b", Path("/x/a/b.py")) == import_folder("a.b", Path("/x/a/b/__init__.py")) == Path("/x")
    True
    """
    return file.parents[name.count(".") + (file.name == "__init__.py")]


def is_installed(folder: Path) -> bool:
    """Whether a folder is one that Python imports from by itself.

    >>> is_installed(Path(sysconfig.get_path("stdlib")))
    True
    """
    return folder.resolve() in {Path(sysconfig.get_path(kind)).resolve() for kind in ("stdlib", "purelib", "platlib")}


def import_folders(config: RunConfig) -> list[str]:
    """The folders from which the configuration's own modules are imported, unless they are installed.

    >>> import_folders(RunConfig(method="sgd"))
    []
    """
    return list(dict.fromkeys(_folders(config)))


def _folders(config: RunConfig) -> Iterator[str]:
    for name, _ in own_modules(config):
        file = module_file(name)
        if name != "__main__" and file is not None and not is_installed(folder := import_folder(name, file.absolute())):
            yield str(folder)
