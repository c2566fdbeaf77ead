"""Small problems for learners: scenarios, heads, nets and batches that train in milliseconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from bgd.scenarios.heads import Heads
from bgd.scenarios.types import Batch, Knowledge, Scenario

SCENARIOS = {
    "task": Scenario("task", Knowledge.TASK_ID, task_in_testing=True, shared_head=False),
    "domain": Scenario("domain", Knowledge.TASK_ID, task_in_testing=False, shared_head=True),
    "class": Scenario("class", Knowledge.TASK_ID, task_in_testing=False, shared_head=False),
    "discrete": Scenario("discrete task-agnostic", Knowledge.NOTHING, task_in_testing=False, shared_head=True),
    "continuous": Scenario(
        "continuous task-agnostic", Knowledge.NOTHING, task_in_testing=False, shared_head=True, boundaries=False
    ),
}
SHARED = Heads(2, ((0, 1), (0, 1), (0, 1)))
SEPARATE = Heads(6, ((0, 1), (2, 3), (4, 5)))


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Nets this small gain nothing from threads, and wait for each other on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def scenarios() -> dict[str, Scenario]:
    return SCENARIOS


@pytest.fixture
def heads_of() -> Callable[[Scenario], Heads]:
    return lambda scenario: SHARED if scenario.shared_head else SEPARATE


@pytest.fixture
def make_net() -> Callable[..., nn.Module]:
    def make(outputs: int = 2, features: int = 5, dropout: float = 0.0) -> nn.Module:
        net = nn.Sequential(nn.Flatten(), nn.Linear(features, 8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, outputs))
        g = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for p in net.parameters():
                p.copy_(torch.randn(p.shape, generator=g) * 0.3)
        return net

    return make


@pytest.fixture
def make_batches() -> Callable[..., list[Batch]]:
    """Batches of one task: two classes, separated by a direction of the task's own."""

    def make(task: int, scenario: Scenario, n: int = 6, size: int = 16, features: int = 5) -> list[Batch]:
        g = torch.Generator().manual_seed(100 + task)
        direction = torch.randn(features, generator=g)
        x = torch.randn(n * size, features, generator=g)
        y = (x @ direction > 0).long()
        if not scenario.shared_head:
            y = y + 2 * task
        revealed = task if scenario.reveals == Knowledge.TASK_ID else None
        return [Batch(x[i : i + size], y[i : i + size], revealed) for i in range(0, n * size, size)]

    return make
