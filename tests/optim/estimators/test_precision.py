"""Noise in few digits: the same expectations, and nothing but the noise in bfloat16."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from estimates import BATCH, agree, sample_expectations
from torch import Tensor, nn

from bgd.optim.estimators import precision

Y = torch.arange(BATCH) % 3

MODELS: dict[str, tuple[Callable[[], nn.Module], Tensor]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), torch.randn(BATCH, 6)),
    "convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 2, groups=2), nn.Tanh(), nn.ConvTranspose2d(4, 2, 2), nn.Flatten(), nn.Linear(32, 3)
        ),
        torch.randn(BATCH, 2, 4, 4),
    ),
    "transformer": (
        lambda: nn.Sequential(
            nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True), nn.Flatten(), nn.Linear(12, 3)
        ),
        torch.randn(BATCH, 3, 4),
    ),
}


@pytest.fixture
def few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor that multiplies bfloat16, for products of any size."""
    monkeypatch.setattr(precision, "WORTH_CASTING", 0)
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda: True)


def loss_of(x: Tensor) -> Callable[[nn.Module], Tensor]:
    return lambda net: F.cross_entropy(net(x), Y, reduction="sum")


@pytest.mark.parametrize("name", MODELS)
def test_agrees_in_mean_with_networks_shared_by_the_batch(name: str, few_digits: None) -> None:
    build, x = MODELS[name]
    agree(build(), loss_of(x), passes=250)


@pytest.mark.parametrize("name", MODELS)
def test_changes_an_estimate_by_rounding_only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, x = MODELS[name]
    model = build()
    exact = sample_expectations(model, loss_of(x), passes=3, std=0.1, shared=False)
    monkeypatch.setattr(precision, "WORTH_CASTING", 0)
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda: True)
    rounded = sample_expectations(model, loss_of(x), passes=3, std=0.1, shared=False)
    for (ours, _), (theirs, _) in zip(rounded, exact, strict=True):
        assert 0 < (ours - theirs).norm() < 0.01 * theirs.norm()


def test_without_noise_nothing_is_rounded(few_digits: None) -> None:
    model, x = nn.Linear(6, 3), torch.randn(BATCH, 6)
    [(ours, _), _] = sample_expectations(model, loss_of(x), passes=2, std=0.0, shared=False)
    [(theirs, _), _] = sample_expectations(model, loss_of(x), passes=2, std=0.0, shared=True)
    assert torch.equal(ours, theirs)


def test_small_products_and_other_types_keep_their_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda: True)
    large = precision.WORTH_CASTING
    assert precision.in_few_digits(torch.zeros(2), large).dtype == torch.bfloat16
    assert precision.in_few_digits(torch.zeros(2), large - 1).dtype == torch.float32
    assert precision.in_few_digits(torch.zeros(2, dtype=torch.float64), large).dtype == torch.float64
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda: False)
    assert precision.in_few_digits(torch.zeros(2), large).dtype == torch.float32
