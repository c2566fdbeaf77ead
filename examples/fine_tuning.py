"""A pretrained network learns new classes, without the old data, and without forgetting the old classes.

The backbone is pretrained in this script, on the digits 0 to 4 of scikit-learn, since no weights are downloaded. Then
only 5 to 9 come. Training the network on them, or its last layer, forgets much of 0 to 4, whatever the optimizer; an
exact head on the features of the backbone keeps both. Takes some seconds and writes a picture:

    python examples/fine_tuning.py --out fine_tuning.png
"""

from __future__ import annotations

import argparse
import copy

import matplotlib
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgd import BGD
from bgd.data import load
from bgd.exact.features import Network
from bgd.exact.learner import ExactLearner

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BATCH = 32
Images = tuple[Tensor, Tensor]


def digits(classes: range) -> tuple[Images, Images]:
    """Training and test images of some classes, from -1 to 1."""
    found = []
    for part in (load("digits").train, load("digits").test):
        rows = (part.labels >= classes.start) & (part.labels < classes.stop)
        found.append((part.images[rows] / 127.5 - 1, part.labels[rows]))
    return found[0], found[1]


def network() -> nn.Module:
    """Two convolutions and two linear layers; room for ten classes."""
    torch.manual_seed(0)
    convolutions = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(512, 200), nn.ReLU(), nn.Linear(200, 10))


def train(net: nn.Module, optimizer: torch.optim.Optimizer, images: Images, epochs: int) -> None:
    """The same loop for every optimizer."""
    generator = torch.Generator().manual_seed(0)
    net.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(images[1]), generator=generator).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(net(images[0][rows]), images[1][rows]).backward()
            optimizer.step()
    net.eval()


def share(predicted: Tensor, labels: Tensor) -> float:
    """The share of right answers."""
    return float((predicted.argmax(1) == labels).float().mean())


def exact_head(net: nn.Module, parts: list[Images]) -> ExactLearner:
    """A head that has seen the parts one after the other, each image once."""
    learner = ExactLearner(lambda shape: Network(net, shape, layer="penultimate"), outputs=10)
    for x, y in parts:
        for rows in torch.arange(len(y)).split(BATCH):
            learner.learn(x[rows], F.one_hot(y[rows], 10).float())
    return learner


@torch.no_grad()
def test(scores, old: Images, new: Images) -> tuple[float, float]:
    """Accuracy on old and new classes, among all ten."""
    return share(scores(old[0]), old[1]), share(scores(new[0]), new[1])


def main(arguments: list[str] | None = None) -> dict[str, tuple[float, float]]:
    """Pretrain, learn the new classes in each way, print and draw; returns accuracies (old classes, new classes)."""
    parser = argparse.ArgumentParser(description="New classes on a pretrained network.")
    parser.add_argument("--out", default="fine_tuning.png", help="where to write the picture")
    parser.add_argument("--epochs", type=int, default=10, help="of pretraining and of fine-tuning")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    (old, old_test), (new, new_test) = digits(range(5)), digits(range(5, 10))
    pretrained = network()
    train(pretrained, torch.optim.Adam(pretrained.parameters(), lr=1e-3), old, given.epochs)
    found = {"pretrained on 0 to 4": test(pretrained, old_test, new_test)}

    for name, make in {
        "Adam 0.001": lambda net: torch.optim.Adam(net.parameters(), lr=1e-3),
        "Adam 0.0001": lambda net: torch.optim.Adam(net.parameters(), lr=1e-4),
        "Adam, last layer": lambda net: torch.optim.Adam(net[-1].parameters(), lr=1e-3),
        "BGD": lambda net: BGD(net.parameters(), seed=0),
    }.items():
        net = copy.deepcopy(pretrained)
        train(net, make(net), new, given.epochs)
        found[name] = test(net, old_test, new_test)
    solution = exact_head(pretrained, [old, new]).solution()
    found["exact head"] = test(solution.mean, old_test, new_test)
    draw(found, given.out)
    return found


def draw(found: dict[str, tuple[float, float]], file: str) -> None:
    """Print and draw the accuracies."""
    print("accuracy              0 to 4    5 to 9")
    figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for row, (name, (old, new)) in enumerate(found.items()):
        print(f"{name:<20}{old:8.1%}{new:10.1%}")
        axis.barh(row - 0.2, 100 * old, 0.38, color="#1f4e79", label="0 to 4" if row == 0 else None)
        axis.barh(row + 0.2, 100 * new, 0.38, color="#e0a080", label="5 to 9" if row == 0 else None)
    axis.set(yticks=range(len(found)), yticklabels=list(found), xlabel="right among ten classes, %", xlim=(0, 100))
    axis.set_title("A pretrained network meets 5 to 9, and no 0 to 4 again")
    axis.invert_yaxis()
    figure.legend(frameon=False, loc="outside right upper")
    figure.savefig(file, dpi=110)
    plt.close(figure)
    print(f"picture: {file}")


if __name__ == "__main__":
    main()
