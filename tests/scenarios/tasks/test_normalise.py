"""From pixels to the network's input."""

import numpy as np
import pytest
import torch

from bgd.scenarios import PADDED_MNIST, UNIT, Normalise, Part, ScenarioError
from bgd.scenarios.tasks import fit_normalisation

EVERY = np.arange(256, dtype=np.uint8).reshape(1, -1)


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
    x = fit_normalisation(part)(images.clone().numpy().reshape(50, -1), (3, 5, 5))
    torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(x.std((0, 2, 3), correction=0), torch.ones(3))


@pytest.mark.parametrize(
    ("mean", "std", "message"),
    [((0.0,), (0.0,), "above 0"), ((float("nan"),), (1.0,), "finite"), ((0.0, 1.0), (1.0,), "2 means but 1")],
)
def test_bad_normalisation(mean, std, message):
    with pytest.raises(ScenarioError, match=message):
        Normalise(mean, std)


def test_channels_that_do_not_fit():
    with pytest.raises(ScenarioError, match="3 means for images of 1"):
        Normalise((0.0,) * 3, (1.0,) * 3)(EVERY, (1, 16, 16))


def test_constant_channel_has_no_statistics():
    part = Part(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.arange(2))
    with pytest.raises(ScenarioError, match="channel 0 is constant"):
        fit_normalisation(part)
