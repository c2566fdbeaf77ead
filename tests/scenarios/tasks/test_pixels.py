import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bgd.scenarios import PADDED_MNIST, UNIT, Normalise, Part, ScenarioError, own_statistics
from bgd.scenarios.tasks.pixels import Blend, Rotate

EVERY = np.arange(256, dtype=np.uint8).reshape(1, -1)
NONE = np.array([0])


def test_unit_pixels():
    x = UNIT(EVERY, (1, 16, 16))
    assert x.shape == (1, 1, 16, 16)
    torch.testing.assert_close(x.flatten(), torch.arange(256) / 255)
    assert x.max() == 1


def test_padded_mnist_as_hsu_et_al():
    torch.testing.assert_close(PADDED_MNIST(EVERY, (1, 16, 16)).flatten(), (torch.arange(256) / 255 - 0.1) / 0.2752)


def test_channels_have_their_own_values():
    x = Normalise((0.0, 0.5), (1.0, 0.25))(EVERY, (2, 8, 16))
    torch.testing.assert_close(x[0, 0].flatten(), torch.arange(128) / 255)
    torch.testing.assert_close(x[0, 1].flatten(), (torch.arange(128, 256) / 255 - 0.5) / 0.25)


def test_float_pixels_are_taken_as_they_are():
    x = Normalise((1.0,), (2.0,))(np.array([[3.0]], dtype=np.float32), (1, 1, 1))
    assert x.item() == 1


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_own_statistics_standardise(dtype):
    images = torch.randint(0, 256, (50, 3, 5, 5), generator=torch.Generator().manual_seed(0))
    images[:, 1] //= 4
    images = images.to(torch.uint8)
    images = images.float() / 255 if dtype is torch.float32 else images
    part = Part(images, torch.zeros(50, dtype=torch.int64))
    x = own_statistics(part)(images.clone().numpy().reshape(50, -1), (3, 5, 5))
    torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(x.std((0, 2, 3), correction=0), torch.ones(3))


@pytest.mark.parametrize(
    ("mean", "std", "said"),
    [((0.0,), (0.0,), "above 0"), ((float("nan"),), (1.0,), "finite"), ((0.0, 1.0), (1.0,), "2 means but 1")],
)
def test_bad_normalisation(mean, std, said):
    with pytest.raises(ScenarioError, match=said):
        Normalise(mean, std)


def test_channels_that_do_not_fit():
    with pytest.raises(ScenarioError, match="3 means for images of 1"):
        Normalise((0.0,) * 3, (1.0,) * 3)(EVERY, (1, 16, 16))


def test_constant_channel_has_no_statistics():
    part = Part(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.arange(2))
    with pytest.raises(ScenarioError, match="channel 0 is constant"):
        own_statistics(part)


@pytest.mark.parametrize("quarter", [0, 1, 2, 3, -1, 5])
@pytest.mark.parametrize("channels", [1, 3])
def test_quarter_turns_are_exact(quarter, channels):
    images = torch.randint(0, 256, (6, channels, 5, 5), dtype=torch.uint8)
    turned = Rotate(90 * quarter, (channels, 5, 5))(images.numpy().reshape(6, -1), NONE)
    expected = torch.rot90(images, quarter, (2, 3))
    assert (turned == expected.reshape(6, -1).numpy()).all()


def test_oblong_images_keep_their_angles():
    """A dot to the right of the middle ends up as far above it, although the image is wider than high."""
    image = torch.zeros(1, 1, 5, 9, dtype=torch.uint8)
    image[0, 0, 2, 6] = 200
    turned = Rotate(90, (1, 5, 9))(image.numpy().reshape(1, -1), NONE).reshape(5, 9)
    assert turned[0, 4] == 200
    assert turned.sum() == 200


def test_rotation_of_floats_is_not_rounded():
    image = np.linspace(0, 1, 25, dtype=np.float32).reshape(1, -1)
    turned = Rotate(30, (1, 5, 5))(image, NONE)
    assert turned.dtype == np.float32
    assert len(np.unique(turned)) > 2


@given(st.integers(0, 255), st.integers(0, 255), st.floats(0, 1))
def test_blend_lies_between(a, b, weight):
    blend = Blend(np.full((1, 1), b, np.uint8), np.array([0]), weight)
    value = int(blend(np.full((1, 1), a, np.uint8), NONE)[0, 0])
    assert abs(value - ((1 - weight) * a + weight * b)) <= 0.5 + 1e-3


def test_blend_uses_each_images_own_partner():
    others = np.array([[10], [20], [30]], np.uint8)
    blend = Blend(others, partners=np.array([2, 0]), weight=1.0)
    assert blend(np.zeros((2, 1), np.uint8), np.array([1, 0])).tolist() == [[10], [30]]
