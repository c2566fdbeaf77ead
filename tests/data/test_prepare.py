"""Data sets turned into others: padded, reshaped, reduced."""

import pytest
import torch
from small_data import make_data

from bgd.data import DataError, DataSet, Part, limit, pad, subset, to_shape


@pytest.fixture
def data():
    return make_data()


def test_padding_is_zeros_around_the_image(data):
    padded = pad(data, 2)
    assert padded.train.images.shape[1:] == (1, 8, 8)
    assert torch.equal(padded.train.images[:, :, 2:-2, 2:-2], data.train.images)
    assert padded.train.images.sum() == data.train.images.sum()


def test_to_shape_centres_and_repeats_channels(data):
    images = to_shape(data, (3, 7, 5)).train.images
    for channel in range(3):
        assert torch.equal(images[:, channel, 1:5, 0:4], data.train.images[:, 0])
    assert images.sum() == 3 * data.train.images.sum()


def test_subset_and_limit(data):
    two = subset(data, [7, 2])
    assert two.classes == ("c7", "c2")
    assert torch.equal(two.train.images[two.train.labels == 0], data.train.images[data.train.labels == 7])
    assert len(limit(data, train=20).train) == 20
    assert len(limit(data, train=20).test) == len(data.test)


def no_class_three(data):
    keep = data.train.labels != 3
    return DataSet("gap", Part(data.train.images[keep], data.train.labels[keep]), data.test, data.classes)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda d: subset(no_class_three(d), [3, 4]), "class 3 .*gap has no train sample"),
        (lambda d: to_shape(to_shape(d, (3, 4, 4)), (1, 4, 4)), "do not fit"),
        (lambda d: subset(d, []), r"classes \(\)"),
        (lambda d: limit(d, train=0), "train=0"),
        (lambda d: pad(d, -1), "pixels=-1"),
    ],
)
def test_invalid_arguments_are_rejected(data, build, message):
    with pytest.raises(DataError, match=message):
        build(data)
