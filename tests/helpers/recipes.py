"""The snippets of docs/training-loops.md, and small parts for them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from bgd import BGD, predict

PAGE = Path(__file__).parent.parent.parent / "docs" / "training-loops.md"


def snippet(name: str) -> str:
    (found,) = re.findall(rf"```python {name}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return found


def names_of_snippets() -> list[str]:
    return re.findall(r"```python (\w+)\n", PAGE.read_text())


def run(name: str, **names: Any) -> dict[str, Any]:
    """Run a snippet with these names, beside those that all share; returns all names."""
    known = {"torch": torch, "F": F, "BGD": BGD, "predict": predict, "Net": Net, **names}
    exec(compile(snippet(name), f"{PAGE.name}: {name}", "exec"), known)
    return known


class Net(nn.Sequential):
    """A network whose weights are the same whenever it is made."""

    def __init__(self) -> None:
        state = torch.random.get_rng_state()
        torch.manual_seed(3)
        super().__init__(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
        torch.random.set_rng_state(state)


def data(count: int = 64) -> tuple[Tensor, Tensor]:
    x = torch.randn(count, 6, generator=torch.Generator().manual_seed(4))
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long()


def batches(size: int = 8, count: int = 64) -> list[tuple[Tensor, Tensor]]:
    x, y = data(count)
    return list(zip(x.split(size), y.split(size), strict=True))


def loader(size: int = 8) -> DataLoader[Any]:
    return DataLoader(TensorDataset(*data()), batch_size=size)


def posterior(optimizer: Any) -> Tensor:
    """All means and stds in a row."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    return torch.cat([optimizer.state[p][key].flatten() for p in params for key in ("mean", "std")])


def by_hand(steps: list[list[tuple[Tensor, Tensor]]], clip: float | None = None) -> Tensor:
    """The posterior after these steps, each of some micro-batches, in a loop without any package."""
    model = Net()
    optimizer = BGD(model.parameters())
    for parts in steps:
        optimizer.zero_grad()
        for x, y in parts:
            (F.cross_entropy(model(x), y) / len(parts)).backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return posterior(optimizer)


def grouped(count: int, epochs: int = 1) -> list[list[tuple[Tensor, Tensor]]]:
    """The micro-batches of each step, where a step takes so many."""
    parts = batches()
    return [parts[i : i + count] for _ in range(epochs) for i in range(0, len(parts), count)]
