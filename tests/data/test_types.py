"""The invariants of a data set, validated when it is made."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bgd.data import DataError, DataSet, Part, hold_out


def part(n=4, labels=None, **changes):
    images = changes.get("images", torch.zeros(n, 1, 2, 2, dtype=torch.uint8))
    return Part(images, torch.arange(n) if labels is None else torch.as_tensor(labels))


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (torch.zeros(4, 2, 2, dtype=torch.uint8), torch.arange(4), "not uint8 .4, 2, 2."),
        (torch.zeros(4, 1, 2, 2, dtype=torch.float64), torch.arange(4), "not float64"),
        (torch.zeros(4, 1, 2, 2), torch.arange(4).int(), "labels must be int64 .N,., not int32"),
        (torch.zeros(4, 1, 2, 2), torch.arange(4)[:, None], "labels must be int64"),
        (torch.zeros(4, 1, 2, 2), torch.arange(3), "4 images but 3 labels"),
    ],
)
def test_wrong_tensors(images, labels, message):
    with pytest.raises(DataError, match=message):
        Part(images, labels)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_pixels_that_are_no_numbers(value):
    images = torch.zeros(4, 1, 2, 2)
    images[2, 0, 1, 1] = value
    with pytest.raises(DataError, match=r"1 images hold NaN or infinite pixels, the first at index 2"):
        Part(images, torch.arange(4))


def test_labels_without_a_class():
    with pytest.raises(DataError, match=r"own: test labels run from 0 to 3, but there are 3 classes"):
        DataSet("own", part(3), part(4), ("a", "b", "c"))
    with pytest.raises(DataError, match=r"own: train labels run from -1 to 0"):
        DataSet("own", part(2, [0, -1]), part(2), ("a", "b"))


def test_parts_that_do_not_fit_together():
    with pytest.raises(DataError, match=r"train images are uint8 .4, 1, 2, 2. but test images are float32"):
        DataSet("own", part(), part(images=torch.zeros(4, 1, 2, 2)), tuple("abcd"))
    with pytest.raises(DataError, match=r"but test images are uint8 .4, 1, 3, 3."):
        DataSet("own", part(), part(images=torch.zeros(4, 1, 3, 3, dtype=torch.uint8)), tuple("abcd"))
    with pytest.raises(DataError, match=r"the test part is empty"):
        DataSet("own", part(), part(0), tuple("abcd"))


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(2, 6))
def test_hold_out_keeps_every_image_and_the_share_of_each_class(labels, every):
    numbered = torch.arange(len(labels)).float().reshape(-1, 1, 1, 1)
    train, test = hold_out(Part(numbered, torch.tensor(labels, dtype=torch.int64)), every)
    both = torch.cat([train.images, test.images]).flatten().tolist()
    assert sorted(both) == list(range(len(labels)))
    for label in range(5):
        assert int((test.labels == label).sum()) == labels.count(label) // every
    for half in (train, test):
        assert [labels[int(i)] for i in half.images.flatten()] == half.labels.tolist()
