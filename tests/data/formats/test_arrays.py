"""Data of the user's own in arrays and tensors."""

import numpy as np
import pytest
import torch

from bgd.data import DataError, from_arrays

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 3, 5, 4), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def test_arrays_and_tensors_give_the_same_data_set():
    arrays = from_arrays(IMAGES, LABELS, IMAGES[:3], LABELS[:3])
    x, y = torch.from_numpy(IMAGES), torch.from_numpy(LABELS)
    tensors = from_arrays(x, y, x[:3], y[:3], classes=["cat", "dog", "bird"])
    assert torch.equal(arrays.train.images, tensors.train.images)
    assert torch.equal(arrays.test.labels, tensors.test.labels)
    assert (arrays.classes, tensors.classes) == (("0", "1", "2"), ("cat", "dog", "bird"))


def test_arrays_may_have_their_channels_last():
    last = IMAGES.transpose(0, 2, 3, 1)
    assert np.array_equal(from_arrays(last, LABELS, last, LABELS).train.images, IMAGES)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_float_tensors_become_float32(dtype):
    x = torch.rand(6, 1, 5, 4).to(dtype).requires_grad_()
    loaded = from_arrays(x, LABELS.tolist(), x, LABELS.tolist())
    assert torch.equal(loaded.train.images, x.float())
    assert not loaded.train.images.requires_grad


def test_the_wrong_array_is_named():
    with pytest.raises(DataError, match=r"^mine \(test\): 6 images but 5 labels"):
        from_arrays(IMAGES, LABELS, IMAGES, LABELS[:5], name="mine")
    with pytest.raises(DataError, match=r"^mine \(train\): images must be numbers, not <U3"):
        from_arrays(IMAGES.astype(str), LABELS, IMAGES, LABELS, name="mine")
