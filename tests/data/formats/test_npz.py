"""Data of the user's own in a folder of .npz arrays."""

import numpy as np
import pytest
import torch
from small_data import save_npz

from bgd.data import DataError, from_npz

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 3, 5, 4), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (IMAGES, IMAGES),
        (IMAGES.transpose(0, 2, 3, 1), IMAGES),
        (IMAGES[:, 0], IMAGES[:, :1]),
        (IMAGES[:, 0, 0], IMAGES[:, :1, :1]),
        (IMAGES.astype(np.int64), IMAGES),
        (IMAGES / 255, (IMAGES / 255).astype(np.float32)),
        (IMAGES > 99, (IMAGES > 99) * np.uint8(255)),
    ],
    ids=["channels first", "channels last", "grey", "features", "integers", "floats", "booleans"],
)
def test_images_in_the_shapes_in_use(tmp_path, stored, expected):
    own = from_npz(save_npz(tmp_path / "own", images=stored, labels=LABELS))
    assert np.array_equal(own.train.images, expected)
    assert own.train.images.dtype == (torch.float32 if expected.dtype == np.float32 else torch.uint8)
    assert (own.name, own.classes, own.test.labels.tolist()) == ("own", ("0", "1", "2"), LABELS.tolist())


def test_one_file_with_named_classes(tmp_path):
    np.savez(tmp_path / "all.npz", x_train=IMAGES, y_train=LABELS, x_test=IMAGES[:3], y_test=LABELS[:3, None],
             classes=["cat", "dog", "bird"])  # fmt: skip
    own = from_npz(tmp_path, name="pets")
    assert (own.name, own.classes, len(own.test)) == ("pets", ("cat", "dog", "bird"), 3)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"pictures": IMAGES, "labels": LABELS}, "no array named images or x or X or data; it has pictures, labels"),
        ({"images": IMAGES}, "no array named labels or y"),
        ({"images": IMAGES, "labels": LABELS[:5]}, "6 images but 5 labels"),
        ({"images": IMAGES, "labels": LABELS / 2}, "labels must be integers"),
        ({"images": IMAGES, "labels": LABELS - 1}, "train labels run from -1 to 1"),
        ({"images": IMAGES, "labels": (LABELS - 1).astype(np.uint32)}, "the label 4294967295 is larger than 12 images"),
        ({"images": IMAGES.astype(int) * 2, "labels": LABELS}, "integer pixels must be 0 to 255"),
        (
            {"images": np.full(IMAGES.shape, np.inf), "labels": LABELS},
            "train.npz: 6 images hold NaN or infinite pixels",
        ),
        ({"images": IMAGES[..., None], "labels": LABELS}, "2 to 4 dimensions, not 5"),
        ({"images": IMAGES.astype(str), "labels": LABELS}, "images must be numbers"),
        ({"images": IMAGES, "labels": LABELS, "classes": ["a", "b"]}, "labels run from 0 to 2, but there are 2"),
        ({"images": np.array([object()] * 6), "labels": LABELS}, "not a readable .npz file of plain arrays"),
        ({"images": np.zeros((6, 8, 8, 4), np.uint8), "labels": LABELS}, "look like RGBA"),
    ],
)
def test_wrong_arrays_are_named(tmp_path, arrays, message):
    with pytest.raises(DataError, match=message):
        from_npz(save_npz(tmp_path / "own", **arrays))


def test_wrong_files_are_named(tmp_path):
    with pytest.raises(DataError, match=r"found no .npz file"):
        from_npz(tmp_path)
    folder = save_npz(tmp_path / "own", images=IMAGES, labels=LABELS)
    data = (folder / "test.npz").read_bytes()
    (folder / "test.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=r"own/test.npz: not a readable .npz"):
        from_npz(folder)
    np.savez_compressed(folder / "test.npz", images=IMAGES, labels=LABELS)
    data = bytearray((folder / "test.npz").read_bytes())
    data[120] ^= 0xFF
    (folder / "test.npz").write_bytes(data)
    with pytest.raises(DataError, match=r"own/test.npz: not a readable .npz"):
        from_npz(folder)
    with (folder / "test.npz").open("wb") as file:
        np.save(file, IMAGES)  # one array, which is no archive of arrays
    with pytest.raises(DataError, match=r"own/test.npz: not a readable .npz"):
        from_npz(folder)


def test_an_encrypted_file_is_named(tmp_path):
    folder = save_npz(tmp_path / "own", images=IMAGES, labels=LABELS)
    data = bytearray((folder / "test.npz").read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(header) + flags] |= 1
    (folder / "test.npz").write_bytes(data)
    with pytest.raises(DataError, match=r"own/test.npz: not a readable .npz .*encrypted"):
        from_npz(folder)


def test_names_of_classes_may_be_bytes(tmp_path):
    assert from_npz(save_npz(tmp_path / "own", images=IMAGES, labels=LABELS, classes=[b"a", b"b", b"c"])).classes == (
        "a",
        "b",
        "c",
    )
