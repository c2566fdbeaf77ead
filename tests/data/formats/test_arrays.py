"""Data of the user's own: folders of .npz arrays, torch data sets."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, TensorDataset

import bgd.data
from bgd.data import DataError, from_npz, from_torch

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 3, 5, 4), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def save(folder, **arrays):
    folder.mkdir(exist_ok=True)
    for which in ("train", "test"):
        np.savez(folder / f"{which}.npz", **arrays)
    return folder


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
    own = from_npz(save(tmp_path / "own", images=stored, labels=LABELS))
    assert np.array_equal(own.train.images, expected)
    assert own.train.images.dtype == (torch.float32 if expected.dtype == np.float32 else torch.uint8)
    assert (own.name, own.classes, own.test.labels.tolist()) == ("own", ("0", "1", "2"), LABELS.tolist())


def test_one_file_with_named_classes(tmp_path):
    np.savez(tmp_path / "all.npz", x_train=IMAGES, y_train=LABELS, x_test=IMAGES[:3], y_test=LABELS[:3, None],
             classes=["cat", "dog", "bird"])  # fmt: skip
    own = from_npz(tmp_path, name="pets")
    assert (own.name, own.classes, len(own.test)) == ("pets", ("cat", "dog", "bird"), 3)


def test_by_name_in_the_users_folder_and_by_path(tmp_path, monkeypatch):
    save(tmp_path / "mine", x=IMAGES, y=LABELS)
    assert bgd.data.load("mine", tmp_path).name == "mine"
    assert bgd.data.load(tmp_path / "mine").name == "mine"
    monkeypatch.setenv("BGD_DATA", str(tmp_path))
    assert bgd.data.load("mine").name == "mine"
    assert bgd.data.available()["mine"] == str(tmp_path / "mine")
    with pytest.raises(DataError, match=r"no data set 'mime': did you mean 'mine'\?"):
        bgd.data.load("mime")
    with pytest.raises(DataError, match=r"no data set 'zzz': there are digits, mnist"):
        bgd.data.load("zzz")
    monkeypatch.delenv("BGD_DATA")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"for the folder of that name write \./mine"):
        bgd.data.load("mine")
    assert bgd.data.load("./mine").name == "mine"
    with pytest.raises(DataError, match=r"is not a folder"):
        bgd.data.load(tmp_path / "none")


@pytest.mark.parametrize(
    ("arrays", "said"),
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
def test_wrong_arrays_are_named(tmp_path, arrays, said):
    with pytest.raises(DataError, match=said):
        from_npz(save(tmp_path / "own", **arrays))


def test_wrong_files_are_named(tmp_path):
    with pytest.raises(DataError, match=r"found no .npz file"):
        from_npz(tmp_path)
    folder = save(tmp_path / "own", images=IMAGES, labels=LABELS)
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


class Items(Dataset):
    classes = ("cat", "dog", "bird")

    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], int(LABELS[index])


@pytest.mark.parametrize(
    "images",
    [
        torch.from_numpy(IMAGES),
        [Image.fromarray(image.transpose(1, 2, 0)) for image in IMAGES],
        [image.transpose(1, 2, 0) for image in IMAGES],
    ],
    ids=["tensors", "PIL", "numpy"],
)
def test_torch_data_sets(images):
    own = from_torch(Items(images), Items(images[:3]), name="pets")
    assert np.array_equal(own.train.images, IMAGES)
    assert own.train.images.dtype == torch.uint8
    assert (own.classes, len(own.test)) == (("cat", "dog", "bird"), 3)


def test_torch_floats_greys_and_features():
    kept = (9, 8, 1)  # nine channels: a tensor is (C, H, W), whatever it looks like
    for shape, expected in (((1, 5, 4), (1, 5, 4)), ((5, 4), (1, 5, 4)), ((7,), (1, 1, 7)), (kept, kept)):
        data = TensorDataset(torch.rand(6, *shape, dtype=torch.float64), torch.from_numpy(LABELS))
        own = from_torch(data, data)
        assert own.train.images.shape == (6, *expected)
        assert torch.equal(own.train.images.flatten(), data.tensors[0].float().flatten())


class Endless(IterableDataset):
    def __iter__(self):
        return iter(())


def test_wrong_torch_items_are_named():
    good = Items(torch.from_numpy(IMAGES))
    with pytest.raises(DataError, match=r"own .test.: item 2 has shape .3, 5, 3., but item 0 .3, 5, 4."):
        from_torch(good, Items([IMAGES[0].transpose(1, 2, 0)] * 2 + [IMAGES[0, :, :, :3].transpose(1, 2, 0)]))
    with pytest.raises(DataError, match=r"own .train.: item 0 is not an .image, label. pair"):
        from_torch(TensorDataset(torch.zeros(3, 1, 2, 2)), good)
    with pytest.raises(DataError, match=r"own .train.: is empty"):
        from_torch(Items([]), good)
    with pytest.raises(DataError, match=r"a data set with a length is needed"):
        from_torch(Endless(), good)
    broken = torch.rand(6, 3, 5, 4)
    broken[3, 0, 0, 0] = torch.nan
    with pytest.raises(DataError, match=r"own .train.: 1 images hold NaN or infinite pixels, the first at index 3"):
        from_torch(Items(broken), good)


def test_an_encrypted_file_is_named(tmp_path):
    folder = save(tmp_path / "own", images=IMAGES, labels=LABELS)
    data = bytearray((folder / "test.npz").read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(header) + flags] |= 1
    (folder / "test.npz").write_bytes(data)
    with pytest.raises(DataError, match=r"own/test.npz: not a readable .npz .*encrypted"):
        from_npz(folder)


def test_names_of_classes_may_be_bytes(tmp_path):
    assert from_npz(save(tmp_path / "own", images=IMAGES, labels=LABELS, classes=[b"a", b"b", b"c"])).classes == (
        "a",
        "b",
        "c",
    )


@pytest.mark.parametrize("label", [0.9, -0.5, torch.tensor(1.5), np.float32(2)])
def test_a_label_that_is_no_whole_number_is_refused(label):
    items = [(torch.zeros(1, 8, 8), 0), (torch.zeros(1, 8, 8), label)]
    with pytest.raises(DataError, match=r"item 1 is not an \(image, label\) pair: .*integer"):
        from_torch(items, items)


def test_palettes_are_looked_up_and_transparency_refused():
    red = np.zeros((8, 8, 3), np.uint8)
    red[:4, :, 0] = 255
    image = Image.fromarray(red)
    plain = from_torch([(image, 0), (image, 1)], [(image, 0)])
    palette = from_torch([(image.quantize(), 0), (image.quantize(), 1)], [(image.quantize(), 0)])
    assert torch.equal(palette.train.images, plain.train.images)
    for mode in ("RGBA", "LA"):
        see_through = [(image.convert(mode), 0)]
        with pytest.raises(DataError, match=f"its mode is {mode}: convert it to RGB or L"):
            from_torch(see_through, see_through)
