"""Small problems for the optimizer's tests."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgd import BGD


class Problem:
    """A small classifier in float64 with a batch, and its closure."""

    def __init__(self, dtype: torch.dtype = torch.float64) -> None:
        generator = torch.Generator().manual_seed(5)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).to(dtype)
        self.x = torch.randn(20, 6, generator=generator, dtype=torch.float64).to(dtype)
        self.y = torch.randint(3, (20,), generator=generator)

    def loss(self, reduction: str = "sum", rows: slice = slice(None)) -> Tensor:
        return F.cross_entropy(self.model(self.x[rows]), self.y[rows], reduction=reduction)

    def closure(self, optimizer: BGD, reduction: str = "sum") -> Callable[[], Tensor]:
        def run() -> Tensor:
            optimizer.zero_grad()
            loss = self.loss(reduction)
            loss.backward()
            return loss

        return run

    def weights(self) -> list[Tensor]:
        return [p.detach().clone() for p in self.model.parameters()]


def posterior(optimizer: BGD) -> list[Tensor]:
    """All means and stds, copied."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    return [optimizer.state[p][key].clone() for p in params for key in ("mean", "std")]
