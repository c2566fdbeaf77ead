"""Data of the user's own in torch data sets."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from bgd.data import DataError, from_torch

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 3, 5, 4), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


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


@pytest.mark.parametrize("label", [0.9, -0.5, torch.tensor(1.5), np.float32(2)])
def test_a_label_that_is_no_whole_number_is_rejected(label):
    items = [(torch.zeros(1, 8, 8), 0), (torch.zeros(1, 8, 8), label)]
    with pytest.raises(DataError, match=r"item 1 is not an \(image, label\) pair: .*integer"):
        from_torch(items, items)


def test_palettes_are_resolved_and_transparency_rejected():
    red = np.zeros((8, 8, 3), np.uint8)
    red[:4, :, 0] = 255
    image = Image.fromarray(red)
    plain = from_torch([(image, 0), (image, 1)], [(image, 0)])
    palette = from_torch([(image.quantize(), 0), (image.quantize(), 1)], [(image.quantize(), 0)])
    assert torch.equal(palette.train.images, plain.train.images)
    for mode in ("RGBA", "LA"):
        transparent = [(image.convert(mode), 0)]
        with pytest.raises(DataError, match=f"its mode is {mode}: convert it to RGB or L"):
            from_torch(transparent, transparent)
