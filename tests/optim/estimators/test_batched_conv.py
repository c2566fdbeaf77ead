"""Convolutional networks: one by one unless asked otherwise, and the same numbers on every path."""

import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from problems import posterior
from shared_bgd import shared_bgd
from torch import Tensor, nn

from bgd.nets import VGG, LeNet
from bgd.optim.compilation import can_compile


def lenet() -> nn.Module:
    return LeNet((1, 12, 12), 4).double()


def vgg(batch_norm: bool = False) -> nn.Module:
    return VGG((3, 8, 8), 4, (6, "M", 8, 8, "M"), batch_norm=batch_norm).double()


def vgg_with_batch_norm() -> nn.Module:
    return vgg(True)


def objective(net: Any, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(net(x), y, reduction="sum")


def learn(make: Any, way: dict[str, Any] | None, steps: int = 3) -> tuple[list[Tensor], str]:
    """Posterior, buffers and loss after some steps: through step(closure), or batched with the given settings."""
    model = make()
    channels = next(model.parameters()).shape[1]
    size = 12 if channels == 1 else 8
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(6, channels, size, size, generator=generator).double(), torch.arange(6) % 4
    optimizer = shared_bgd(model.parameters(), std_init=0.05, mc_samples=4, seed=3, std_max=None)

    def closure() -> Tensor:
        loss = objective(model, x, y)
        loss.backward()
        return loss

    step = optimizer.batched(model, objective, **(way or {}))
    for _ in range(steps):
        loss = optimizer.step(closure) if way is None else step(x, y)
    return [*posterior(optimizer), *(b.clone() for b in model.buffers()), loss], step.path


@pytest.mark.parametrize("make", [lenet, vgg, vgg_with_batch_norm])
@pytest.mark.parametrize("compile", [None, False])
def test_the_loop_is_chosen_without_a_warning(make: Any, compile: bool | None) -> None:
    expected, _ = learn(make, None)
    found, path = learn(make, {"compile": compile})
    assert path == "loop"
    assert all(map(torch.equal, found, expected))


@pytest.mark.parametrize("make", [lenet, vgg])
@pytest.mark.parametrize("chunk_size", [1, 3, 4])
def test_a_chunk_size_selects_vmap(make: Any, chunk_size: int) -> None:
    expected, _ = learn(make, None)
    found, path = learn(make, {"chunk_size": chunk_size, "compile": False})
    assert path == "eager"
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.skipif(not can_compile(), reason="no C++ compiler on this machine")
def test_compile_selects_the_compiled_path() -> None:
    def small() -> nn.Module:  # compiling takes long enough
        return VGG((3, 8, 8), 4, (6, "M")).double()

    expected, _ = learn(small, None)
    found, path = learn(small, {"compile": True})
    assert path == "compiled"
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


def test_batch_norm_falls_back_from_the_requested_path_with_one_warning() -> None:
    expected, _ = learn(vgg_with_batch_norm, None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, path = learn(vgg_with_batch_norm, {"chunk_size": 4, "compile": False})
    assert [("loop path" in str(w.message), w.category) for w in caught] == [(True, RuntimeWarning)]
    assert path == "loop"
    assert all(map(torch.equal, found, expected))


def test_channels_last_gives_the_same_posterior_in_the_same_layout() -> None:
    expected, _ = learn(vgg, None)
    found, _ = learn(lambda: vgg().to(memory_format=torch.channels_last), None)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)
    model = vgg().to(memory_format=torch.channels_last)
    optimizer = shared_bgd(model.parameters())
    for p in model.parameters():
        assert optimizer.state[p]["mean"].stride() == optimizer.state[p]["std"].stride() == p.stride()
