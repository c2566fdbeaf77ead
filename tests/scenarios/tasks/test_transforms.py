"""Rotation and blending, pixel by pixel."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bgd.scenarios.tasks.transforms import Blend, Rotate

NO_INDICES = np.array([0])


@pytest.mark.parametrize("quarter", [0, 1, 2, 3, -1, 5])
@pytest.mark.parametrize("channels", [1, 3])
def test_quarter_turns_are_exact(quarter, channels):
    images = torch.randint(0, 256, (6, channels, 5, 5), dtype=torch.uint8)
    rotated = Rotate(90 * quarter, (channels, 5, 5))(images.numpy().reshape(6, -1), NO_INDICES)
    expected = torch.rot90(images, quarter, (2, 3))
    assert (rotated == expected.reshape(6, -1).numpy()).all()


def test_oblong_images_keep_their_angles():
    """A dot to the right of the middle ends up as far above it, although the image is wider than high."""
    image = torch.zeros(1, 1, 5, 9, dtype=torch.uint8)
    image[0, 0, 2, 6] = 200
    rotated = Rotate(90, (1, 5, 9))(image.numpy().reshape(1, -1), NO_INDICES).reshape(5, 9)
    assert rotated[0, 4] == 200
    assert rotated.sum() == 200


def test_rotation_of_floats_is_not_rounded():
    image = np.linspace(0, 1, 25, dtype=np.float32).reshape(1, -1)
    rotated = Rotate(30, (1, 5, 5))(image, NO_INDICES)
    assert rotated.dtype == np.float32
    assert len(np.unique(rotated)) > 2


@given(st.integers(0, 255), st.integers(0, 255), st.floats(0, 1))
def test_blend_lies_between(a, b, weight):
    blend = Blend(np.full((1, 1), b, np.uint8), np.array([0]), weight)
    value = int(blend(np.full((1, 1), a, np.uint8), NO_INDICES)[0, 0])
    assert abs(value - ((1 - weight) * a + weight * b)) <= 0.5 + 1e-3


def test_blend_uses_each_images_own_partner():
    others = np.array([[10], [20], [30]], np.uint8)
    blend = Blend(others, partners=np.array([2, 0]), weight=1.0)
    assert blend(np.zeros((2, 1), np.uint8), np.array([1, 0])).tolist() == [[10], [30]]
