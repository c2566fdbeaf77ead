"""Two new classes at a time, none of the old ones again: a network keeps the last two, the exact head keeps all.

Both see the digits of scikit-learn sorted by class, without replay and without being told of the boundaries. Takes some
seconds and writes a picture:

    python examples/new_classes.py --out new_classes.png
"""

from __future__ import annotations

import argparse

import matplotlib
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgd import BGD, labels_trick
from bgd.data import load
from bgd.exact.features import Fourier
from bgd.exact.learner import ExactLearner

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BATCH = 32
Images = tuple[Tensor, Tensor]


def digits() -> tuple[Images, Images]:
    """Training and test images as rows of numbers from -1 to 1, and their labels."""
    data = load("digits")
    return tuple((part.images.flatten(1) / 127.5 - 1, part.labels) for part in (data.train, data.test))


def network(seed: int) -> nn.Module:
    """64-100-10."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))


class Trained:
    """A network and its optimizer; ``trick`` trains only the outputs of the classes in the batch."""

    def __init__(self, optimizer: type[torch.optim.Optimizer], trick: bool = False, seed: int = 0, **settings: float):
        self.net, self.trick = network(seed), trick
        self.optimizer = optimizer(self.net.parameters(), **settings)

    def learn(self, x: Tensor, y: Tensor) -> None:
        """One step."""
        self.optimizer.zero_grad()
        scores = self.net(x)
        (labels_trick(scores, y) if self.trick else F.cross_entropy(scores, y)).backward()
        self.optimizer.step()

    def predict(self, x: Tensor) -> Tensor:
        """The classes."""
        return self.net(x).argmax(1)


class Exact:
    """The exact head on random Fourier features."""

    def __init__(self, units: int, seed: int = 0):
        self.head = ExactLearner(lambda shape: Fourier(shape, units=units, seed=seed), outputs=10)

    def learn(self, x: Tensor, y: Tensor) -> None:
        """Add the batch to the sums."""
        self.head.learn(x, F.one_hot(y, 10).float())

    def predict(self, x: Tensor) -> Tensor:
        """The classes."""
        return self.head.solution().mean(x).argmax(1)


def follow(learner: Trained | Exact, train: Images, test: Images, epochs: int) -> list[float]:
    """Accuracy on all classes so far, after each pair of classes."""
    found, generator = [], torch.Generator().manual_seed(0)
    for last in range(1, 10, 2):
        rows = torch.nonzero((train[1] == last) | (train[1] == last - 1)).flatten()
        for _ in range(1 if isinstance(learner, Exact) else epochs):
            for chosen in rows[torch.randperm(len(rows), generator=generator)].split(BATCH):
                learner.learn(train[0][chosen], train[1][chosen])
        seen = test[1] <= last
        with torch.no_grad():
            found.append(float((learner.predict(test[0][seen]) == test[1][seen]).float().mean()))
    return found


def main(arguments: list[str] | None = None) -> dict[str, list[float]]:
    """Train all, print a table, draw it."""
    parser = argparse.ArgumentParser(description="New classes without replay.")
    parser.add_argument("--out", default="new_classes.png", help="where to write the picture")
    parser.add_argument("--epochs", type=int, default=10, help="of the networks; the exact head has one")
    parser.add_argument("--units", type=int, default=1000, help="random features of the exact head")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    train, test = digits()
    learners = {
        "exact head": Exact(given.units),
        "BGD + labels trick": Trained(BGD, trick=True),
        "BGD": Trained(BGD),
        "Adam": Trained(torch.optim.Adam, lr=1e-3),
    }
    found = {name: follow(learner, train, test, given.epochs) for name, learner in learners.items()}
    figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for name, accuracies in found.items():
        print(f"{name:<20}" + "".join(f"{value:8.1%}" for value in accuracies))
        axis.plot([2, 4, 6, 8, 10], [100 * value for value in accuracies], "o-", label=name)
    axis.set(xlabel="classes so far", ylabel="right, %", xticks=[2, 4, 6, 8, 10], ylim=(0, 103))
    axis.set_title("Digits, two new classes at a time, without replay")
    axis.legend(frameon=False)
    figure.savefig(given.out, dpi=110)
    plt.close(figure)
    print(f"picture: {given.out}")
    return found


if __name__ == "__main__":
    main()
