"""Batches of many sizes: no compilation for each, and the same path for each batch after a resume."""

import copy
from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from problems import posterior
from shared_bgd import shared_bgd
from torch import Tensor, nn

from bgd import BGD
from bgd.optim.compilation import MAX_COMPILED_SHAPES, BatchShapes, can_compile

SIZES = [16, 16, 5, 16, 7, 16, 9, 16, 3, 16, 11, 16]
"""Full batches, and five different short ones."""


def objective(net: Any, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(net(x), y, reduction="sum")


def make() -> tuple[nn.Module, BGD]:
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    return model, shared_bgd(model.parameters(), std_init=0.1, seed=3)


def batch(size: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(size)
    return torch.randn(size, 6, generator=generator).double(), torch.arange(size) % 3


@pytest.mark.skipif(not can_compile(), reason="no C++ compiler on this machine")
def test_short_last_batches_compile_nothing_and_equal_the_loop() -> None:
    model, optimizer = make()
    step = optimizer.batched(model, objective, compile=True)
    step(*batch(SIZES[0]))
    counters = torch._dynamo.utils.counters["stats"]
    before = counters["unique_graphs"]
    for size in SIZES[1:]:
        step(*batch(size))
    assert counters["unique_graphs"] == before
    assert step.path == "compiled"

    model, loop = make()
    for size in SIZES:
        x, y = batch(size)

        def closure(model=model, x=x, y=y) -> Tensor:
            loss = objective(model, x, y)
            loss.backward()
            return loss

        loop.step(closure)
    torch.testing.assert_close(posterior(optimizer), posterior(loop), rtol=1e-12, atol=1e-12)


@given(st.lists(st.sampled_from("abcdef"), max_size=60), st.integers(0, 60))
def test_a_resumed_stream_decides_as_the_uninterrupted_one(stream: list[str], cut: int) -> None:
    def decide(shapes: BatchShapes, part: list[str]) -> list[bool]:
        decisions = []
        for shape in part:
            decisions.append(shapes.worth_compiling(shape))
            shapes.record(shape)
        return decisions

    whole = BatchShapes()
    expected = decide(whole, stream)
    first, second = BatchShapes(), BatchShapes()
    start = decide(first, stream[:cut])
    second.load_state_dict(first.state_dict())
    assert start + decide(second, stream[cut:]) == expected
    assert len(whole.compiled) <= MAX_COMPILED_SHAPES
    twice = [a for a, b in pairwise(stream) if a == b]
    assert set(whole.compiled) <= {*stream[:1], *twice}


def test_the_optimizers_state_holds_the_shapes() -> None:
    model, optimizer = make()
    step = optimizer.batched(model, objective, compile=False)
    for size in (16, 5):
        step(*batch(size))
    state = optimizer.state_dict()
    assert state["bgd"]["batch_shapes"] == {"compiled": ["16x6 16"], "last": "5x6 5"}
    _, other = make()
    other.load_state_dict(state)
    assert other.state_dict()["bgd"] == state["bgd"] == copy.deepcopy(optimizer).state_dict()["bgd"]


def test_a_failed_batch_is_not_recorded() -> None:
    model, optimizer = make()
    step = optimizer.batched(model, objective, compile=False)
    x, y = batch(16)
    with pytest.raises(RuntimeError, match="shapes"):
        step(x[:, :3], y)
    step(x, y)
    assert optimizer.state_dict()["bgd"]["batch_shapes"]["compiled"] == ["16x6 16"]
