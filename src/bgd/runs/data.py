"""The data of a run: loaded once per process, prepared as configured, identified by a digest if not published."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version

from bgd.data import limit, pad, published_names, subset, to_shape
from bgd.data import load as load_data
from bgd.data.tables import NAMED_TABLES, RIVER_TABLES, Table, load_table
from bgd.data.tables.files import ENDINGS
from bgd.data.types import DataError, DataSet
from bgd.runs.config import DataConfig, SetConfig


def build_data(config: DataConfig) -> DataSet:
    """The data set, limited in size, padded, and in the configured shape.

    >>> build_data(DataConfig(name="digits", pad=2, train=100)).train
    Part(100 images, uint8 1x12x12)
    >>> build_data(DataConfig(name="digits", shape=(3, 32, 32), train=100)).train
    Part(100 images, uint8 3x32x32)
    """
    data = pad(limit(load(config.name), config.train, config.test), config.pad)
    return data if config.shape is None else to_shape(data, config.shape)


def build_mix(config: DataConfig) -> list[DataSet]:
    """The data sets of a mix, each with its own classes and size; their shapes are still their own.

    >>> halves = DataConfig(mix=[{"name": "digits", "classes": range(5)}, {"name": "digits", "train": 80}], train=90)
    >>> for data in build_mix(halves):
    ...     print(data.name, len(data.classes), data.train)
    digits 0-4 5 Part(90 images, uint8 1x8x8)
    digits 10 Part(80 images, uint8 1x8x8)
    """
    return [_build_member(member, config) for member in config.mix]


def _build_member(member: SetConfig, config: DataConfig) -> DataSet:
    data = load(member.name)
    if member.classes is not None:
        first, last = member.classes[0], member.classes[-1]
        consecutive = member.classes == tuple(range(first, last + 1))
        classes = f"{first}-{last}" if consecutive else ", ".join(map(str, member.classes))
        data = replace(subset(data, member.classes), name=f"{data.name} {classes}")
    return pad(limit(data, member.train or config.train, member.test or config.test), config.pad)


def build_table(config: DataConfig, seed: int) -> Table:
    """The table of a prequential stream, limited in size.

    >>> build_table(DataConfig(name="river-phishing", train=100), seed=1)
    Table('river-phishing', 100 rows, 9 features, 2 classes)
    """
    return _load_table(config.name, config.target, seed if config.name in NAMED_TABLES else 0).first(config.train)


def is_table(config: DataConfig) -> bool:
    """Whether the data is a table, for a prequential stream.

    >>> is_table(DataConfig(name="./weather.csv", target="rain")), is_table(DataConfig(name="digits"))
    (True, False)
    """
    return config.target is not None or config.name in NAMED_TABLES or config.name.endswith(ENDINGS)


def _digest_table(config: DataConfig) -> str:
    if config.name in RIVER_TABLES:
        return f"river {version('river')}"
    table = _load_table(config.name, config.target, 0)
    content = f"{table.features}{table.classes}".encode() + table.x.tobytes() + table.y.tobytes()
    return hashlib.sha256(content).hexdigest()[:32]


@lru_cache(maxsize=8)
def _load_table(name: str, target: str | None, seed: int) -> Table:
    return load_table(name, target, seed)


def data_names(config: DataConfig) -> list[str]:
    """The data sets that a configuration uses, each once.

    >>> data_names(DataConfig()), data_names(DataConfig(mix=[{"name": "cifar10"}, {"name": "svhn"}, {"name": "svhn"}]))
    (['digits'], ['cifar10', 'svhn'])
    """
    return list(dict.fromkeys(member.name for member in config.mix)) or [config.name]


def data_note(config: DataConfig) -> str:
    """What a reader of results must know of the data, such as a part that is not the published one.

    >>> data_note(DataConfig(name="digits"))
    ''
    """
    if is_table(config):
        return ""
    notes = {name: note for name in data_names(config) if (note := load(name).note)}
    return "; ".join(f"{name}: {note}" for name, note in notes.items()) if config.mix else "".join(notes.values())


def data_digest(config: DataConfig) -> str:
    """A digest of the arrays that a name does not identify: the user's own, or others under a published name.

    Empty where all data is published.

    >>> data_digest(DataConfig(name="digits"))
    ''
    """
    if is_table(config):
        return _digest_table(config)
    folder = os.environ.get("BGD_DATA")
    return "".join(_digest(name, folder) for name in data_names(config) if not _is_published(name))


def _is_published(name: str) -> bool:
    if name not in published_names():
        return False
    try:
        return not load(name).note
    except DataError:  # absent data is no error here: a finished run can be read without it
        return True


@lru_cache(maxsize=8)  # every run of a comparison needs it
def _digest(name: str, folder: str | None) -> str:
    total = hashlib.sha256()
    data = _load(name, folder)
    for tensor in (data.train.images, data.train.labels, data.test.images, data.test.labels):
        total.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        total.update(tensor.contiguous().numpy().data)
    return total.hexdigest()[:32]


def load(name: str) -> DataSet:
    """A data set as published, cached for the other runs of this process.

    >>> load("digits") is load("digits")
    True
    """
    return _load(name, os.environ.get("BGD_DATA"))


@lru_cache(maxsize=8)  # many runs of one process use the same data; a mix has several sets
def _load(name: str, _folder: str | None) -> DataSet:
    return load_data(name)
