"""The finder of an initial std: predict, then learn, on copies."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bgd import BGD, find_std_init


def problem() -> tuple[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(960, 6, generator=generator)
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 2))
    return model, list(zip(x.split(16), y.split(16), strict=True))


def loss(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(net(x), y)


def test_it_prefers_a_std_that_learns_and_leaves_the_model_alone(tmp_path: Path) -> None:
    model, batches = problem()
    before = [p.clone() for p in model.parameters()]
    found = find_std_init(model, loss, batches, factors=(0.01, 1.0, 50.0), seed=1)
    assert found.factor == 1.0
    assert found.default_is_fine
    assert found.losses[1.0] < 0.95 * found.losses[0.01]
    assert found.losses[1.0] < found.losses[50.0]
    for p, q in zip(model.parameters(), before, strict=True):
        assert torch.equal(p, q)
    found.plot(tmp_path / "std.png")
    assert (tmp_path / "std.png").read_bytes().startswith(b"\x89PNG")
    optimizer = BGD(model.parameters(), std_init=found.std_init)
    assert [float(optimizer.state[p]["std"].flatten()[0]) for p in model.parameters()] == pytest.approx(found.std_init)


def test_its_losses_are_those_of_a_loop_that_predicts_before_it_learns() -> None:
    model, batches = problem()
    found = find_std_init(model, loss, batches[:7], factors=(1.0,), seed=1)
    optimizer, total = BGD(model.parameters(), seed=1), 0.0
    for batch in batches[:7]:
        with torch.no_grad():
            total += float(loss(model.eval(), *batch))
        optimizer.zero_grad()
        loss(model.train(), *batch).backward()
        optimizer.step()
    assert found.losses[1.0] == pytest.approx(total / 7, rel=1e-6)


def test_a_best_factor_at_the_edge_is_said_to_be_so() -> None:
    model, batches = problem()
    assert find_std_init(model, loss, batches[:20], factors=(0.01, 0.1), seed=1).at_edge
    assert not find_std_init(model, loss, batches, factors=(0.01, 1.0, 50.0), seed=1).at_edge


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(2, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x.unflatten(1, (3, 2)))[0][:, -1])


MODELS = {
    "convolution and norm": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2)
    ),
    "transformer": lambda: nn.Sequential(
        nn.Unflatten(1, (3, 2)), nn.TransformerEncoderLayer(2, 1, 4, batch_first=True), nn.Flatten(), nn.Linear(6, 2)
    ),
    "recurrent": Recurrent,
    "partly frozen": lambda: nn.Sequential(nn.Linear(6, 8).requires_grad_(False), nn.ReLU(), nn.Linear(8, 2)),
}


@pytest.mark.parametrize("name", MODELS)
def test_kinds_of_models(name: str, tmp_path: Path) -> None:
    _, batches = problem()
    torch.manual_seed(0)
    model = MODELS[name]()
    buffers = [b.clone() for b in model.buffers()]
    found = find_std_init(model, loss, batches[:12], factors=(0.1, 1.0), seed=1)
    assert all(0 < value < 5 for value in found.losses.values())
    assert all(map(torch.equal, buffers, model.buffers()))
    found.plot(tmp_path / "std.png")


def test_dict_batches_and_a_regression() -> None:
    _, batches = problem()
    dicts = [{"x": x, "y": y.float()} for x, y in batches[:12]]
    found = find_std_init(nn.Linear(6, 1), lambda net, b: F.mse_loss(net(b["x"])[:, 0], b["y"]), dicts, (1.0,), seed=1)
    assert 0 < found.losses[1.0] < 2


def test_bad_input_is_named() -> None:
    model, batches = problem()
    with pytest.raises(ValueError, match="empty"):
        find_std_init(model, loss, [])
    with pytest.raises(ValueError, match="-1"):
        find_std_init(model, loss, batches, factors=(-1.0,))
    with pytest.raises(ValueError, match="no std of"):
        find_std_init(model, lambda net, x, y: loss(net, x, y) * torch.nan, batches[:1])


@pytest.mark.parametrize("criterion", [nn.functional.mse_loss, nn.MSELoss()])
def test_a_criterion_of_torch_will_do(criterion):
    """It gives what the same loss written as a function of the model gives."""
    x = torch.randn(32, 3, generator=torch.Generator().manual_seed(0))
    batches = [(part, part[:, :1]) for part in x.split(8)]
    model = nn.Linear(3, 1)
    own = find_std_init(model, lambda net, x, y: (net(x) - y).square().mean(), batches, seed=0)
    assert find_std_init(model, criterion, batches, seed=0).losses == pytest.approx(own.losses)
