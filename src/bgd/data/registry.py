"""Data sets by name: the package's own, those of installed packages, and the user's own.

``load`` finds a name in this order: the package's own data sets; entry points of the group ``bgd.data``; a folder of
``.npz`` arrays, by path or by its name in the user's folder; a function ``module:function``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bgd.data.formats import digits
from bgd.data.formats.arrays import from_arrays
from bgd.data.formats.cifar import CIFAR10, CIFAR100, CIFAR100_COARSE
from bgd.data.formats.idx import FASHION_MNIST, MNIST, NOTMNIST
from bgd.data.formats.npz import from_npz
from bgd.data.formats.svhn import SVHN
from bgd.data.sources import locate
from bgd.data.sources.published import Published
from bgd.data.types import DataError, DataSet
from bgd.errors import BGDError, suggest
from bgd.plugins import PluginError, describe
from bgd.plugins import find as find_plugin
from bgd.plugins import names as plugin_names

GROUP = "bgd.data"
"""The entry points of installed packages: ``[project.entry-points."bgd.data"]``."""

PUBLISHED: dict[str, Published] = {
    published.name: published
    for published in (MNIST, FASHION_MNIST, NOTMNIST, SVHN, CIFAR10, CIFAR100, CIFAR100_COARSE)
}
"""Every published data set by name; ``digits`` is not among them, since scikit-learn contains its bytes."""


def published_names() -> tuple[str, ...]:
    """Return the names of the package's own data sets, whose contents are known by their hash.

    >>> published_names()
    ('digits', 'mnist', 'fashion-mnist', 'notmnist', 'svhn', 'cifar10', 'cifar100', 'cifar100-coarse')
    """
    return ("digits", *PUBLISHED)


def names() -> tuple[str, ...]:
    """Return the names that ``load`` knows: the package's own, then entry points; nothing is read or imported.

    >>> names()[:3]
    ('digits', 'mnist', 'fashion-mnist')
    """
    return tuple(plugin_names(published_names(), GROUP))


def available(data: str | Path | None = None) -> dict[str, str]:
    """Return what can be loaded without a network, and from where; files are found, not checked.

    A subfolder of the user's folder with ``.npz`` arrays counts, under its own name.

    >>> available()["digits"]
    'embedded'
    """
    found = {"digits": "embedded"}
    for name, published in PUBLISHED.items():
        if local := locate.find_local(published, data):
            found[name] = str(local[0])
    found |= dict.fromkeys(names()[len(published_names()) :], "entry point")
    if folder := locate.data_folder(data):
        own = sorted({path.parent for path in folder.glob("*/*.npz")})
        found |= {path.name: str(path) for path in own if path.name not in names()}
    return found


def load(name: str | Path = "digits", data: str | Path | None = None) -> DataSet:
    """Load a data set into memory, from the first source that has it; every published byte is checked by hash.

    A function from outside the package takes no arguments and returns a ``DataSet``, or four arrays or tensors
    ``(train_x, train_y, test_x, test_y)``.

    >>> load("mnits")
    Traceback (most recent call last):
    bgd.data.types.DataError: no data set 'mnits': did you mean 'mnist'?
    >>> load("math:tau")
    Traceback (most recent call last):
    bgd.data.types.DataError: data set 'math:tau' is a float: name a function that returns the data

    Args:
        name: One of ``names()``; a folder of ``.npz`` arrays, by path or by its name in the user's folder; or
            ``module:function``.
        data: The folder to search first; else the environment variable ``BGD_DATA``.

    Raises:
        DataError: If it cannot be found (names the file and the folder to put it in), or is damaged (names the file).
    """
    if name == "digits":
        return digits.load()
    if published := PUBLISHED.get(str(name)):
        return _load_published(published, data)
    if isinstance(name, str) and (name in names() or (":" in name and os.sep not in name)):
        return _load_plugin(name)
    return from_npz(_find_own_folder(name, data))


def _load_published(published: Published, data: str | Path | None) -> DataSet:
    obtained = locate.obtain(published, data)
    train, test = obtained.edition.decode(obtained.contents)
    notes = [obtained.edition.note]
    if not obtained.published:
        notes.append(f"not the published files, but {len(train):,} + {len(test):,} images that a SHA256SUMS lists")
    return DataSet(published.name, train, test, published.classes, "; ".join(filter(None, notes)))


def _load_plugin(name: str) -> DataSet:
    try:
        function: Callable[[], Any] = find_plugin(name, {}, "data set", GROUP)
    except PluginError as error:
        raise DataError(str(error)) from error
    if not callable(function):
        raise DataError(f"data set {name!r} is a {type(function).__name__}: name a function that returns the data")
    try:
        made = function()
    except BGDError:
        raise
    except Exception as error:
        raise DataError(
            f"data set {name!r}: its function failed with {type(error).__name__}: {describe(error)}"
        ) from error
    if isinstance(made, DataSet):
        return made
    if isinstance(made, tuple | list) and len(made) == 4:
        return from_arrays(*made, name=name)
    what = f"{type(made).__name__} of {len(made)}" if isinstance(made, tuple | list) else type(made).__name__
    raise DataError(
        f"data set {name!r}: its function returned a {what}: return a bgd.data.DataSet, or the four arrays "
        "(train_x, train_y, test_x, test_y)"
    )


def _find_own_folder(name: str | Path, data: str | Path | None) -> Path:
    if isinstance(name, Path) or os.sep in name:
        if Path(name).expanduser().is_dir():
            return Path(name)
        raise DataError(f"{name} is not a folder")
    if (folder := locate.data_folder(data)) and any((folder / name).glob("*.npz")):
        return folder / name
    if Path(name).is_dir():
        raise DataError(f"no data set '{name}': for the folder of that name write {os.curdir}{os.sep}{name}")
    raise DataError(f"no data set '{name}': {suggest(name.lower(), [*names(), *available(data)])}")
