"""The loop holds at most seven tensors of the parameters' size and two of the largest's, activations aside."""

import torch
from shared_bgd import shared_bgd
from torch import nn
from torch.profiler import ProfilerActivity, profile


def test_peak_memory_of_the_loop() -> None:
    model = nn.Sequential(nn.Linear(1000, 500, bias=False), nn.Linear(500, 1000, bias=False))
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    x = torch.randn(1, 1000)

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        optimizer = shared_bgd(model.parameters(), std_init=0.01, mc_samples=3)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
    moves = sorted((e.start_ns(), e.nbytes()) for e in prof.profiler.kineto_results.events() if e.name() == "[memory]")
    current = peak = size  # the weights were there before
    for _, nbytes in moves:
        current += nbytes
        peak = max(peak, current)
    assert 6 * size < peak <= 8.05 * size
