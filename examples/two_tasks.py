"""Two tasks, one after the other: SGD forgets the first, BGD keeps it.

A small network learns to separate two moons on the left, and then another pair on the right. It is not told that the
task has changed, and it never sees the left again. It takes some seconds and writes a picture:

    python examples/two_tasks.py --out two_tasks.png
"""

from __future__ import annotations

import argparse
import math

import matplotlib
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgd import BGD, predict

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Task = tuple[Tensor, Tensor]
BATCH = 32


def moons(n: int, centre: float, upright: bool, generator: torch.Generator) -> Task:
    """Two interleaved half circles around (centre, 0), with a little noise."""
    angle = math.pi * torch.rand(n, generator=generator)
    y = torch.randint(2, (n,), generator=generator)
    upper = torch.stack([angle.cos() - 0.5, angle.sin() - 0.25], 1)
    lower = torch.stack([0.5 - angle.cos(), 0.25 - angle.sin()], 1)
    x = torch.where(y[:, None] == 0, upper, lower)
    if upright:
        x = torch.stack([x[:, 1], -x[:, 0]], 1)
    return x + 0.12 * torch.randn(n, 2, generator=generator) + torch.tensor([centre, 0.0]), y


def network(seed: int) -> nn.Sequential:
    """2-100-2; the kinks of its hidden units are spread over the plane."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(2, 100), nn.ReLU(), nn.Linear(100, 2))
    nn.init.normal_(net[0].weight)
    nn.init.uniform_(net[0].bias, -3, 3)
    return net


def accuracy(net: nn.Module, task: Task) -> float:
    """Share of right answers of the network with its present weights, which for BGD are the means."""
    x, y = task
    return float((net(x).argmax(1) == y).float().mean())


def train(net: nn.Module, optimizer: torch.optim.Optimizer, task: Task, steps: int, generator: torch.Generator) -> None:
    """The same loop for both: BGD needs the closure that torch knows from LBFGS, and the summed loss."""
    reduction = "sum" if isinstance(optimizer, BGD) else "mean"
    for _ in range(steps):
        rows = torch.randint(len(task[1]), (BATCH,), generator=generator)
        x, y = task[0][rows], task[1][rows]

        def closure(x: Tensor = x, y: Tensor = y) -> Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y, reduction=reduction)
            loss.backward()
            return loss

        optimizer.step(closure)


def draw(axis: plt.Axes, values: Tensor, tasks: list[Task], title: str, cmap: str, limits: tuple[float, float]) -> None:
    """Values on a grid as a map, with the data on top."""
    axis.imshow(
        values,
        origin="lower",
        extent=(-3.2, 3.2, -1.8, 1.8),
        cmap=cmap,
        vmin=limits[0],
        vmax=limits[1],
        aspect="auto",
        alpha=0.6,
    )
    for (x, y), marker in zip(tasks, "os", strict=True):
        axis.scatter(
            *x.T,
            c=["#1f4e79" if label == 0 else "#a33b20" for label in y],
            s=9,
            marker=marker,
            linewidths=0.3,
            edgecolors="white",
        )
    axis.set(title=title, xticks=[], yticks=[], xlim=(-3.2, 3.2), ylim=(-1.8, 1.8))


def main() -> dict[str, tuple[float, float, float]]:
    """Train both, print a table, draw the picture; returns accuracies (left before, left after, right)."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", default="two_tasks.png", help="where to write the picture")
    parser.add_argument("--steps", type=int, default=1000, help="training steps for each task")
    torch.set_num_threads(1)  # a network this small is slower on several
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    generator = torch.Generator().manual_seed(arguments.seed)
    left, right = moons(400, -1.6, False, generator), moons(400, 1.6, True, generator)
    ys, xs = torch.meshgrid(torch.linspace(-1.8, 1.8, 90), torch.linspace(-3.2, 3.2, 160), indexing="ij")
    grid = torch.stack([xs.flatten(), ys.flatten()], 1)

    figure, axes = plt.subplots(1, 3, figsize=(13, 3.1), layout="constrained")
    results = {}
    print("accuracy     left, after left   left, after right   right")
    for axis, name in zip(axes, ("SGD", "BGD"), strict=False):
        net = network(arguments.seed)
        if name == "SGD":
            optimizer: torch.optim.Optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        else:
            optimizer = BGD.paper(net.parameters(), std_init=0.1, std_max="init", seed=arguments.seed)
        batches = torch.Generator().manual_seed(arguments.seed)
        train(net, optimizer, left, arguments.steps, batches)
        before = accuracy(net, left)
        train(net, optimizer, right, arguments.steps, batches)
        results[name] = (before, accuracy(net, left), accuracy(net, right))
        print(f"{name:<12} {before:15.1%}   {results[name][1]:17.1%}   {results[name][2]:5.1%}")
        posterior = optimizer if isinstance(optimizer, BGD) else None
        found = predict(net, posterior, grid, samples=30)
        title = f"{name}: left {results[name][1]:.0%}, right {results[name][2]:.0%}"
        draw(axis, found.probs[:, 1].view(90, 160), [left, right], title, "RdBu_r", (0, 1))
        if posterior is not None:
            unsure = found.mutual_information.view(90, 160)
            draw(axes[2], unsure, [left, right], "BGD: what it does not know", "Greys", (0, float(unsure.max())))
    figure.suptitle("Trained on the left, then on the right")
    figure.savefig(arguments.out, dpi=130)
    plt.close(figure)
    print(f"picture: {arguments.out}")
    return results


if __name__ == "__main__":
    main()
