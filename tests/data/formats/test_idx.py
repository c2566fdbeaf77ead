"""MNIST's family: the IDX format, compressed or not, and the errors for damaged files."""

import contextlib
import gzip
from dataclasses import replace

import numpy as np
import pytest
import tiny_set
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from tiny_set import CONTENTS, GZIPPED, TINY, idx_bytes

import bgd.data
from bgd.data import DataError
from bgd.data.formats import idx
from bgd.data.sources.files import md5_of
from bgd.data.sources.published import Content, File


@given(arrays(np.uint8, array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)))
def test_any_array_survives_the_format(array):
    assert np.array_equal(idx.read_idx(Content("a", idx_bytes(array))), array)


@given(data=st.binary(max_size=64))
def test_any_bytes_are_an_array_or_one_clear_error(data):
    with contextlib.suppress(DataError):
        idx.read_idx(Content("the-file", data))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d[:-1], "truncated or damaged"),
        (lambda d: d + b"0", "truncated or damaged"),
        (lambda d: d[:9], "truncated: its IDX header takes 16 bytes"),
        (lambda d: b"", "not an IDX file"),
        (lambda d: b"\0\0\x0d" + d[3:], "not an IDX file of bytes"),
    ],
)
def test_damaged_images_are_named(damage, message):
    data = damage(CONTENTS["train-images-idx3-ubyte"])
    labels = Content("labels", CONTENTS["train-labels-idx1-ubyte"])
    with pytest.raises(DataError, match=f"^some/images: {message}"):
        idx.read_part(Content("some/images", data), labels)


def test_part_that_does_not_fit_together_is_rejected():
    images, labels = (CONTENTS[f"train-{kind}"] for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"))
    other = CONTENTS["t10k-labels-idx1-ubyte"]
    with pytest.raises(DataError, match=r"i holds 300 images, but l 60 labels"):
        idx.read_part(Content("i", images), Content("l", other))
    with pytest.raises(DataError, match=r"l: labels should be one row"):
        idx.read_part(Content("i", images), Content("l", images))
    with pytest.raises(DataError, match=r"i: images should be N x H x W"):
        idx.read_part(Content("i", labels), Content("l", labels))
    with pytest.raises(DataError, match=r"l: label 10 is out of range"):
        idx.read_part(Content("i", images), Content("l", labels[:-1] + bytes([10])))


@pytest.mark.parametrize("layout", ["plain", "gzip", "dotted", "torchvision"])
def test_loads_the_layouts_in_use(monkeypatch, tmp_path, layout):
    monkeypatch.setitem(bgd.data.PUBLISHED, "tiny", replace(TINY, folders=("tiny", "Tiny/raw")))
    folder = tmp_path / ("Tiny/raw" if layout == "torchvision" else "tiny")
    folder.mkdir(parents=True)
    for name, data in (GZIPPED if layout == "gzip" else CONTENTS).items():
        (folder / (name.replace("-idx", ".idx") if layout == "dotted" else name)).write_bytes(data)
    tiny = bgd.data.load("tiny", tmp_path)
    pixels = np.frombuffer(CONTENTS["train-images-idx3-ubyte"], np.uint8, offset=16).reshape(300, 1, 28, 28)
    assert torch.equal(tiny.train.images, torch.from_numpy(pixels.copy()))
    assert tiny.train.labels.tolist() == [i % 10 for i in range(300)]
    assert (len(tiny.test), tiny.test.labels.dtype, tiny.note) == (60, torch.int64, "")
    assert tiny.train.images.dtype == torch.uint8


def test_notmnist_is_split_the_same_way_every_time_with_a_note(monkeypatch, tmp_path):
    contents = tiny_set.make(pixels=4, test=100)
    full, small = idx.NOTMNIST.editions
    md5s = {name: md5_of(data) for name, data in contents.items()}
    full = replace(full, files=tuple(File(f.name, f.md5 and md5s[f.name]) for f in full.files))
    small = replace(small, files=tuple(File(f.name, md5s[f.name]) for f in small.files))
    monkeypatch.setitem(bgd.data.PUBLISHED, "notmnist", replace(idx.NOTMNIST, editions=(full, small)))
    folder = tmp_path / "notmnist"
    folder.mkdir()
    for file in small.files:
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(contents[file.name]))
    letters = bgd.data.load("notmnist", tmp_path)
    assert letters.train.labels.bincount().tolist() == [8] * 10
    assert letters.test.labels.bincount().tolist() == [2] * 10
    assert "test images alone" in letters.note
    pixels = torch.tensor(list(contents["t10k-images-idx3-ubyte"][16:]), dtype=torch.uint8).reshape(100, 1, 4, 4)
    # of each letter every fifth: with labels 0..9 in turn, that is images 40 to 49 and 90 to 99
    assert torch.equal(letters.test.images, torch.cat([pixels[40:50], pixels[90:100]]))
    # a folder with the training part as well must list it, since nobody publishes its hash
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        (folder / name).write_bytes(contents[name])
    with pytest.raises(DataError, match=r"no hash is published"):
        bgd.data.load("notmnist", tmp_path)
