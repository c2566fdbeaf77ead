"""The loop holds at most eight tensors of the parameters' size, activations aside."""

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from bgd import BGD


def test_peak_memory_of_the_loop() -> None:
    model = nn.Sequential(nn.Linear(1000, 500, bias=False), nn.Linear(500, 1000, bias=False))
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    optimizer = BGD(model.parameters(), std_init=0.01, mc_samples=3)
    x = torch.randn(1, 1000)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    optimizer.zero_grad()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        optimizer.step(closure)
    results = prof.profiler.kineto_results
    moves = sorted((e.start_ns(), e.nbytes()) for e in results.events() if e.name() == "[memory]")
    current = peak = 3 * size  # weights, means, stds
    for _, nbytes in moves:
        current += nbytes
        peak = max(peak, current)
    assert moves, "the profiler saw no allocation"
    assert 6 * size < peak <= 8.05 * size
