"""How noisy the estimates of E[g] and E[g eps] are for what they cost: noise for each example, or for the batch.

Networks are trained on scikit-learn's digits for some steps, then one batch is estimated over and over at the posterior
that was reached. Variances are summed over all weights; costs are medians of alternating passes in one process, in
units of a forward and backward pass without noise. What counts is variance times cost: with K passes the variance is
divided by K and the cost multiplied, so the product is that of any K.

    python benchmarks/variance.py --out benchmarks/variance.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

from bgd import BGD
from bgd.nets import LeNet
from bgd.optim.estimators.base import Expectations

BATCH, STEPS = 128, 150


class Transformer(nn.Module):
    """Two layers over the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.position = nn.Linear(8, 32), nn.Parameter(torch.zeros(8, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(32, 10)

    def forward(self, rows: Tensor) -> Tensor:
        """Logits (N, 10) of images (N, 8, 8)."""
        return self.head(self.layers(self.embed(rows) + self.position).mean(1))


def networks() -> dict[str, tuple[nn.Module, Callable[[Tensor], Tensor]]]:
    return {
        "MLP 64-200-200-10": (
            nn.Sequential(nn.Linear(64, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10)),
            lambda x: x.flatten(1),
        ),
        "LeNet": (LeNet((1, 32, 32), outputs=10), lambda x: F.interpolate(x[:, None], size=32)),
        "transformer, 2 layers": (Transformer(), lambda x: x),
    }


def digits() -> tuple[Tensor, Tensor]:
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    return torch.tensor(data.images, dtype=torch.float32)[order] / 16, torch.tensor(data.target)[order]


def trained(model: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
    """The stds after some steps of the default BGD."""
    optimizer = BGD(model.parameters(), seed=0)
    for i in range(STEPS):
        rows = torch.arange(i * BATCH, (i + 1) * BATCH) % len(x)
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    return [optimizer.state[p]["std"].clone() for p in model.parameters()]


class Spread:
    """Mean and variance of a vector, summed over its elements."""

    def __init__(self) -> None:
        self.count, self.sum, self.squares = 0, torch.zeros(()), torch.zeros(())

    def add(self, tensors: list[Tensor]) -> None:
        """Count in one estimate."""
        row = torch.cat([t.flatten() for t in tensors]).double()
        self.sum, self.squares, self.count = self.sum + row, self.squares + row.square(), self.count + 1

    @property
    def variance(self) -> float:
        """Of one estimate."""
        mean = self.sum / self.count
        return float(((self.squares / self.count - mean.square()) * self.count / (self.count - 1)).sum())


def captured(optimizer: BGD, stds: list[Tensor]) -> tuple[list[list[Tensor]], Callable[..., Expectations]]:
    """Let steps record their expectations and change nothing."""
    found: list[list[Tensor]] = [[], []]

    def record(_step: Any, estimate: Callable[[], Expectations]) -> Expectations:
        expectations = estimate()
        pairs = list(expectations.scaled(stds))
        found[0] = [g for g, _ in pairs if g is not None]
        found[1] = [e for _, e in pairs if e is not None]
        return expectations

    optimizer._update = record  # type: ignore[method-assign]
    return found, record


def measure(model: nn.Module, x: Tensor, y: Tensor, stds: list[Tensor], passes: int) -> dict[str, Any]:
    optimizers = {
        "noise for each example": BGD(model.parameters(), std_init=stds, seed=1),
        "noise for the batch": BGD.paper(model.parameters(), std_init=stds, seed=2, mc_samples=1, reduction="mean"),
    }
    found = {name: captured(optimizer, stds)[0] for name, optimizer in optimizers.items()}
    spreads = {name: (Spread(), Spread()) for name in optimizers}
    times: dict[str, list[float]] = {name: [] for name in ("plain", *optimizers)}

    def forward_backward() -> Tensor:
        model.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    for optimizer in optimizers.values():
        optimizer._passes.detach()
    for _ in range(passes):
        started = time.perf_counter()
        forward_backward()
        times["plain"].append(time.perf_counter() - started)
        for name, optimizer in optimizers.items():
            if name == "noise for each example":
                optimizer._passes.attach([model])  # type: ignore[attr-defined]
            started = time.perf_counter()
            optimizer.step(forward_backward, batch_size=BATCH)
            times[name].append(time.perf_counter() - started)
            optimizer._passes.detach()
            for spread, tensors in zip(spreads[name], found[name], strict=True):
                spread.add(tensors)
    plain = statistics.median(times["plain"])
    rows = {
        name: {
            "variance of E[g]": spreads[name][0].variance,
            "variance of E[g eps]": spreads[name][1].variance,
            "cost": statistics.median(times[name]) / plain,
        }
        for name in optimizers
    }
    ours, theirs = rows.values()
    cost = theirs["cost"] / ours["cost"]
    gains = {f"gain in {key[12:]}": cost * theirs[key] / ours[key] for key in ours if key != "cost"}
    return {**rows, **gains, "milliseconds of a plain pass": 1000 * plain, "passes": passes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--passes", type=int, default=200)
    options = parser.parse_args()
    torch.manual_seed(0)
    images, labels = digits()
    results = {}
    for name, (model, prepare) in networks().items():
        x = prepare(images)
        stds = trained(model, x, labels)
        results[name] = measure(model, x[:BATCH], labels[:BATCH], stds, options.passes)
        print(name, json.dumps(results[name], indent=1), flush=True)
    if options.out is not None:
        settings = {
            "batch": BATCH,
            "steps before": STEPS,
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
        }
        options.out.write_text(json.dumps({"settings": settings, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
