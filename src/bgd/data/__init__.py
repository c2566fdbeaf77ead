"""Data sets in memory, and where their bytes come from.

>>> digits = load("digits")
>>> digits.train.images.dtype, len(digits.classes)
(torch.uint8, 10)
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from bgd import plugins
from bgd.data.formats import digits
from bgd.data.formats.arrays import from_npz, from_torch
from bgd.data.formats.cifar import CIFAR10, CIFAR100, CIFAR100_COARSE
from bgd.data.formats.idx import FASHION_MNIST, MNIST, NOTMNIST
from bgd.data.formats.svhn import SVHN
from bgd.data.sources import locate
from bgd.data.sources.published import Published
from bgd.data.types import DataError, DataSet, Part, cut

__all__ = [
    "PUBLISHED",
    "DataError",
    "DataSet",
    "Part",
    "available",
    "cut",
    "from_npz",
    "from_torch",
    "load",
    "names",
]

PUBLISHED: dict[str, Published] = {
    published.name: published
    for published in (MNIST, FASHION_MNIST, NOTMNIST, SVHN, CIFAR10, CIFAR100, CIFAR100_COARSE)
}
"""Every published data set by name; ``digits`` is embedded and stands beside them."""


def names() -> tuple[str, ...]:
    """Return the names that ``load`` knows, whether or not their bytes are at hand.

    >>> names()
    ('digits', 'mnist', 'fashion-mnist', 'notmnist', 'svhn', 'cifar10', 'cifar100', 'cifar100-coarse')
    """
    return ("digits", *PUBLISHED)


def available(data: str | Path | None = None) -> dict[str, str]:
    """Return what can be loaded without a network, and from where; files are found, not checked.

    A subfolder of the user's folder with ``.npz`` arrays counts, under its own name.

    >>> available()["digits"]
    'embedded'
    """
    found = {"digits": "embedded"}
    for name, published in PUBLISHED.items():
        if at_hand := locate.at_hand(published, data):
            found[name] = str(at_hand[0])
    if folder := locate.data_folder(data):
        own = sorted({path.parent for path in folder.glob("*/*.npz")})
        found |= {path.name: str(path) for path in own if path.name not in names()}
    return found


def load(name: str | Path = "digits", data: str | Path | None = None) -> DataSet:
    """Load a data set into memory, from the first source that has it; every byte is checked by hash.

    >>> load("mnits")
    Traceback (most recent call last):
    bgd.data.types.DataError: no data set 'mnits': did you mean 'mnist'?

    Args:
        name: One of ``names()``; or a folder of ``.npz`` arrays, by path or by its name in the user's folder.
        data: The folder to look in first; else the environment variable ``BGD_DATA``.

    Raises:
        DataError: If it cannot be found (says which file to put where), or is damaged (names the file).
    """
    if name == "digits":
        return digits.load()
    if ":" in str(name) and os.sep not in str(name):  # stand-in until the data branch is merged
        own: DataSet = plugins.load(str(name), "data set")()
        return own
    published = PUBLISHED.get(str(name))
    if published is None:
        return from_npz(_own_folder(name, data))
    got = locate.obtain(published, data)
    train, test = got.edition.decode(got.contents)
    notes = [got.edition.note]
    if not got.published:
        notes.append(f"not the published files, but {len(train):,} + {len(test):,} images that a SHA256SUMS lists")
    return DataSet(published.name, train, test, published.classes, "; ".join(filter(None, notes)))


def _own_folder(name: str | Path, data: str | Path | None) -> Path:
    if isinstance(name, Path) or os.sep in name:
        if Path(name).expanduser().is_dir():
            return Path(name)
        raise DataError(f"{name} is not a folder")
    if (folder := locate.data_folder(data)) and any((folder / name).glob("*.npz")):
        return folder / name
    if Path(name).is_dir():
        raise DataError(f"no data set '{name}': for the folder of that name write {os.curdir}{os.sep}{name}")
    close = difflib.get_close_matches(name.lower(), available(data) | dict.fromkeys(names()), n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(names())}"
    raise DataError(f"no data set '{name}': {hint}")
