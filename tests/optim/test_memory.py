"""How many tensors of the parameters' size a step holds, activations aside: six by default, seven in the loop."""

from collections.abc import Callable

import pytest
import torch
from shared_bgd import shared_bgd
from torch import nn
from torch.profiler import ProfilerActivity, profile

from bgd import BGD
from bgd.optim.estimators import precision


def peak_of(model: nn.Module, learn: Callable[[], object]) -> float:
    """The most memory that is held at a time, in units of the parameters' size."""
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        learn()
    moves = sorted((e.start_ns(), e.nbytes()) for e in prof.profiler.kineto_results.events() if e.name() == "[memory]")
    current = peak = size  # the weights were there before
    for _, nbytes in moves:
        current += nbytes
        peak = max(peak, current)
    return peak / size


def large_model() -> nn.Module:
    return nn.Sequential(nn.Linear(1000, 500, bias=False), nn.Linear(500, 1000, bias=False))


def test_peak_memory_of_the_loop() -> None:
    """And two tensors of the largest parameter's size, which is half of all here."""
    model, x = large_model(), torch.randn(1, 1000)

    def learn() -> None:
        optimizer = shared_bgd(model.parameters(), std_init=0.01, mc_samples=3)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)

    assert 6 < peak_of(model, learn) <= 8.05


@pytest.mark.parametrize("few_digits", [False, True])
def test_peak_memory_of_the_default(few_digits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "WORTH_CASTING", 0)
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda: few_digits)
    model, x = large_model(), torch.randn(1, 1000)

    def learn(model: nn.Module = model) -> None:
        optimizer = BGD(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

    learn(large_model())  # makes the tables of noise, which all optimizers share
    assert 4 < peak_of(model, learn) <= 6
