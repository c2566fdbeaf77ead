"""CIFAR on small files made in its formats, binary and python (pickles), fine and coarse labels."""

import io
import os
import pickle
import struct
import tarfile
from dataclasses import replace

import numpy as np
import pytest

import bgd.data
from bgd.data import DataError
from bgd.data.formats import cifar
from bgd.data.sources.files import md5_of
from bgd.data.sources.published import Content, File

GENERATOR = np.random.default_rng(0)
IMAGES = GENERATOR.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
FINE, COARSE = GENERATOR.integers(0, 100, 12), GENERATOR.integers(0, 20, 12)
TEN = GENERATOR.integers(0, 10, 12)


def binary(rows, *labels):
    columns = [np.asarray(label, np.uint8)[rows, None] for label in labels]
    return np.hstack([*columns, IMAGES[rows].reshape(-1, 3072)]).tobytes()


class Python2Pickler(pickle._Pickler):
    """Pickles as Python 2 did when the files were published: all text is byte strings."""

    def save_string(self, text):
        data = text.encode("latin1") if isinstance(text, str) else text
        self.write(pickle.BINSTRING + struct.pack("<i", len(data)) + data)
        self.memoize(text)

    dispatch = pickle._Pickler.dispatch | {str: save_string, bytes: save_string}


def python2_pickle(entries):
    """Pickle as published, arrays under the module name that numpy then had."""
    buffer = io.BytesIO()
    Python2Pickler(buffer, protocol=2, fix_imports=True).dump(entries)
    return buffer.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def python(rows, **labels):
    named = {key: np.asarray(label)[rows].tolist() for key, label in labels.items()}
    return python2_pickle({"data": IMAGES[rows].reshape(-1, 3072), "batch_label": b"batch", **named})


def published(name, edition_index, contents):
    """Return the data set's own description, with the hashes of the small files."""
    whole = bgd.data.PUBLISHED[name]
    edition = whole.editions[edition_index]
    files = tuple(File(file.name, md5_of(contents[file.name])) for file in edition.files)
    return replace(whole, editions=(replace(edition, files=files, mirrors=(), packages=()),))


def files_of(name, edition_index):
    if name == "cifar10":
        rows = [slice(2 * k, 2 * k + 2) for k in range(6)]
        names = [*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]
        if edition_index == 0:
            return {f"{n}.bin": binary(r, TEN) for n, r in zip(names, rows, strict=True)}
        return {n: python(r, labels=TEN) for n, r in zip(names, rows, strict=True)}
    rows = {"train": slice(0, 10), "test": slice(10, 12)}
    if edition_index == 0:
        return {n: python(r, fine_labels=FINE, coarse_labels=COARSE) for n, r in rows.items()}
    return {f"{n}.bin": binary(r, COARSE, FINE) for n, r in rows.items()}


CASES = [(name, edition) for name in ("cifar10", "cifar100", "cifar100-coarse") for edition in (0, 1)]
LABELS = {"cifar10": TEN, "cifar100": FINE, "cifar100-coarse": COARSE}


@pytest.mark.parametrize("layout", ["files", "unpacked", "archive"])
@pytest.mark.parametrize(("name", "edition_index"), CASES)
def test_every_version_gives_the_same_images(monkeypatch, tmp_path, name, edition_index, layout):
    contents = files_of(name, edition_index)
    described = published(name, edition_index, contents)
    edition = described.editions[0]
    monkeypatch.setitem(bgd.data.PUBLISHED, name, described)
    folder = tmp_path / described.folders[0] if layout == "files" else tmp_path / edition.folder
    folder.mkdir()
    for file, data in contents.items():
        (folder / file).write_bytes(data)
    if layout == "archive":
        with tarfile.open(tmp_path / edition.archive, "w:gz") as tar:
            tar.add(folder, edition.folder)
        for file in contents:
            (folder / file).unlink()
    loaded = bgd.data.load(name, tmp_path)
    assert np.array_equal(loaded.train.images, IMAGES[:10])
    assert np.array_equal(loaded.test.images, IMAGES[10:])
    assert loaded.train.labels.tolist() + loaded.test.labels.tolist() == LABELS[name].tolist()


def test_class_names_are_those_of_the_publisher():
    fine, coarse = cifar.CIFAR100.classes, cifar.CIFAR100_COARSE.classes
    assert (len(fine), len(coarse)) == (100, 20)
    assert list(fine) == sorted(fine)
    assert [fine[i] for i in (0, 1, 11, 49, 99)] == ["apple", "aquarium fish", "boy", "mountain", "worm"]
    assert [coarse[i] for i in (0, 14, 19)] == ["aquatic mammals", "people", "vehicles 2"]


class Malicious:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_malicious_pickle_is_rejected(tmp_path, protocol):
    trap = tmp_path / "sprung"
    attack = pickle.dumps({"data": Malicious(str(trap)), "labels": [1]}, protocol=protocol)
    with pytest.raises(DataError, match=r"^evil: not a CIFAR batch: .*mkdir, which is refused"):
        cifar.read_python(Content("evil", attack), "labels", 10)
    assert not trap.exists()
    pickle.loads(attack)  # the same bytes do spring it where nothing is restricted
    assert trap.exists()


@pytest.mark.parametrize("name", ["builtins\neval", "numpy\nload", "numpy.core.multiarray\nscalar", "os\nsystem"])
def test_only_arrays_are_allowed(name):
    with pytest.raises(DataError, match=r"which is refused"):
        cifar.read_python(Content("evil", b"c" + name.encode() + b"\n."), "labels", 10)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"data": IMAGES.reshape(12, -1)}, "lacks 'data' or 'labels'"),
        ({"data": IMAGES.reshape(12, -1), "labels": [0] * 11}, "12 images but 11 labels"),
        ({"data": IMAGES.reshape(12, -1), "labels": [0] * 11 + [10]}, "labels must be 0 to 9, found 0 to 10"),
        ({"data": IMAGES.reshape(12, -1), "labels": [0] * 11 + [-1]}, "labels must be 0 to 9, found -1 to 0"),
        ({"data": IMAGES.reshape(12, -1), "labels": [b"a"] * 12}, "'labels' should be a list of integers"),
        ({"data": IMAGES.reshape(12, -1), "labels": [1.7] * 12}, "'labels' should be a list of integers"),
        ({"data": IMAGES, "labels": [0] * 12}, "'data' should be uint8 N x 3072"),
        ({"data": IMAGES.reshape(12, -1) / 255, "labels": [0] * 12}, "'data' should be uint8"),
        ({"data": [1, 2], "labels": [0] * 2}, "not list"),
    ],
)
def test_wrong_batch_is_named(entries, message):
    with pytest.raises(DataError, match=f"^batch: .*{message}"):
        cifar.read_python(Content("batch", python2_pickle(entries)), "labels", 10)


def test_truncated_files_are_named():
    whole = python(slice(0, 4), labels=TEN)
    for data in (whole[:-100], b"", pickle.dumps([1, 2])):
        with pytest.raises(DataError, match=r"^some/batch: not a CIFAR batch"):
            cifar.read_python(Content("some/batch", data), "labels", 10)
    for data in (binary(slice(0, 4), TEN)[:-1], b""):
        with pytest.raises(DataError, match=r"^some/batch: truncated or damaged"):
            cifar.read_binary(Content("some/batch", data), 1, 0, 10)
    with pytest.raises(DataError, match=r"^some/batch: labels must be 0 to 9"):
        cifar.read_binary(Content("some/batch", bytes([10]) + bytes(3072)), 1, 0, 10)
