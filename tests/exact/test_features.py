"""Feature maps: seeded, restored from their state, fitted once, and the kernels and whitening that they promise."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from bgd.exact import ExactError
from bgd.exact.features import Fourier, Identity, Network, Patches, RandomReLU, penultimate
from bgd.exact.features import patches as patches_module

SHAPE = (2, 9, 9)


def images(n=30, seed=0, shape=SHAPE):
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(seed))


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(162, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 3))


MAKE = {
    "identity": lambda seed=0: Identity(SHAPE),
    "fourier": lambda seed=0: Fourier(SHAPE, 20, scales=(0.5, 1.0), seed=seed),
    "windows": lambda seed=0: Fourier(SHAPE, 20, seed=seed, windows=True),
    "relu": lambda seed=0: RandomReLU(SHAPE, 20, seed=seed),
    "patches": lambda seed=0: Patches(SHAPE, 4, size=3, seed=seed),
    "network": lambda seed=0: Network(net(), SHAPE, "penultimate"),
}


@pytest.mark.parametrize("name", MAKE)
def test_the_state_is_all_there_is(name):
    first = MAKE[name]().fit(images())
    other = MAKE[name](seed=1).fit(images(seed=1))
    before = torch.get_rng_state()
    phi = first(images(seed=2))
    assert phi.shape == (30, first.dim)
    assert_close(first(images())[:, :-1].square().sum(1).mean(), torch.tensor(1.0))
    assert phi[:, -1].eq(1).all()
    other.load_state_dict(first.state_dict())
    assert torch.equal(other(images(seed=2)), phi)
    first.fit(images(seed=5))  # later inputs change nothing
    assert torch.equal(first(images(seed=2)), phi)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", ["fourier", "windows", "relu", "patches"])
def test_a_seed_decides_the_features(name):
    same, again, other = (MAKE[name](seed=seed).fit(images()) for seed in (3, 3, 4))
    assert torch.equal(same(images()), again(images()))
    assert not torch.equal(same(images()), other(images()))


def test_fourier_features_approach_the_mean_of_gaussian_kernels():
    x = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    features = Fourier((5,), 60_000, scales=(0.5, 2.0)).fit(x)
    phi = features(x)[:, :-1]
    square = torch.cdist(x, x).square() / torch.pdist(x).median() ** 2
    kernel = (torch.exp(-square / (2 * 0.5**2)) + torch.exp(-square / (2 * 2.0**2))) / 2
    assert_close(phi @ phi.T, kernel, atol=0.03, rtol=0)


def test_windowed_features_approach_the_mean_of_kernels_of_squares():
    x = images(40)
    features = Fourier(SHAPE, 40_000, windows=True).fit(x)
    masks = features.weight.ne(0).reshape(-1, *SHAPE)
    sides = [masks.any(dim).any(1).sum(1) for dim in (2, 3)]
    assert torch.equal(*sides)
    assert torch.equal(masks.sum((1, 2, 3)), SHAPE[0] * sides[0] ** 2)  # nothing but a square
    assert (int(sides[0].min()), int(sides[0].max())) == (2, 6)
    phi = features(x)[:, :-1]
    square = (x[3] - x[4]).square().flatten() @ masks.flatten(1).T.float()
    expected = torch.exp(-square / (2 * features.distance**2)).mean()
    assert_close(phi[3] @ phi[4], expected, atol=0.03, rtol=0)
    median = torch.pdist((x * masks[0]).flatten(1)).median()
    assert_close(features.distance[0], median, atol=0, rtol=0.2)


def test_an_empty_corner_is_no_reason_to_fail():
    x = torch.nn.functional.pad(images(20, shape=(1, 4, 4)), (6, 0, 6, 0))
    phi = Fourier((1, 10, 10), 50, windows=True).fit(x)(x)
    assert phi.isfinite().all()


def test_patches_equal_their_definition(monkeypatch):
    """Normalise, whiten, compare, threshold and pool each patch on its own, instead of one convolution."""
    x = images(12)
    features = Patches(SHAPE, 4, size=3, pool=2, threshold=0.1).fit(x)
    monkeypatch.setattr(patches_module, "CHUNK", 1)  # image by image
    phi = features.transform(x)
    floor = 0.003 * x.var()
    places = nn.functional.unfold(x, 3).transpose(1, 2)  # (n, 49, 18)
    centred = places - places.mean(2, keepdim=True)
    patches = centred / (centred.square().mean(2, keepdim=True) + floor).sqrt()
    responses = patches @ features.filters.flatten(1).T - features.offsets
    responses = responses.transpose(1, 2).reshape(12, 4, 7, 7)
    pooled = [nn.functional.adaptive_avg_pool2d((s * responses - 0.1).relu(), 2) for s in (1, -1)]
    assert_close(phi, torch.cat(pooled, 1).flatten(1), atol=1e-5, rtol=1e-4)


def test_brightness_and_contrast_hardly_matter_to_patches():
    x = images(40)
    features = Patches(SHAPE, 16, size=5).fit(x)
    assert_close(features(1.5 * x - 0.2), features(x), atol=0.02, rtol=0.02)


def test_a_network_is_used_in_evaluation_mode_and_left_in_its_own():
    module = net()
    features = Network(module, SHAPE, "penultimate").fit(images())
    assert torch.equal(features(images()), features(images()))  # no dropout
    assert module.training
    assert all(p.requires_grad for p in module.parameters())
    expected = module[2](module[1](images().flatten(1))).detach()
    assert_close(features(images())[:, :-1] / features.scale, expected)
    assert Network(module, SHAPE).dim == 4


def test_bad_input_is_refused():
    with pytest.raises(ExactError, match=r"need images .* of at least 7 pixels a side, but the shape is \(1, 6, 6\)"):
        Patches((1, 6, 6))
    with pytest.raises(ExactError, match=r"windows need images \(channels, height, width\), but the shape is \(7,\)"):
        Fourier((7,), windows=True)
    with pytest.raises(ExactError, match="first inputs contain NaN"):
        Identity((2,)).fit(torch.tensor([[math.nan, 1.0]]))
    with pytest.raises(ExactError, match="has no linear layer"):
        penultimate(nn.ReLU(), torch.ones(1, 1))


def test_equal_inputs_are_no_reason_to_fail():
    phi = Fourier((3,), 10).fit(torch.ones(5, 3))(torch.ones(1, 3))
    assert phi.isfinite().all()
