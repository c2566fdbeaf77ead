"""Fine-tune a pretrained network on new data, without the old, and without forgetting it.

The posterior remembers: BGD pretrains a small convolutional network on the digits of scikit-learn (in this script, since
no weights are downloaded), and its state dict holds how certain each weight is. Weeks later there is only new data, the
same digits inverted and turned upside down. From the same weights, BGD, SGD and Adam are fine-tuned on it. Takes some
seconds and writes a picture:

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

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BATCH = 32
Images = tuple[Tensor, Tensor]


def digits(changed: bool) -> tuple[Images, Images]:
    """Training and test images from -1 to 1; the changed ones are upside down, light where they were dark."""
    data = load("digits")
    parts = [(part.images / 127.5 - 1, part.labels) for part in (data.train, data.test)]
    return tuple((-x.flip(2) if changed else x, y) for x, y in parts)


def network() -> nn.Module:
    """Two convolutions and two linear layers."""
    torch.manual_seed(0)
    convolutions = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(512, 100), nn.ReLU(), nn.Linear(100, 10))


def accuracy(net: nn.Module, images: Images) -> float:
    """The share of right answers."""
    net.eval()
    with torch.no_grad():
        return float((net(images[0]).argmax(1) == images[1]).float().mean())


def train(net: nn.Module, optimizer: torch.optim.Optimizer, images: Images, epochs: int) -> None:
    """The same loop for every optimizer."""
    generator = torch.Generator().manual_seed(0)
    net.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(images[1]), generator=generator).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(net(images[0][rows]), images[1][rows]).backward()
            optimizer.step()


def main(arguments: list[str] | None = None) -> dict[str, tuple[float, float]]:
    """Pretrain, fine-tune with each, print and draw; returns accuracies (old data, new data)."""
    parser = argparse.ArgumentParser(description="Fine-tune without forgetting.")
    parser.add_argument("--out", default="fine_tuning.png", help="where to write the picture")
    parser.add_argument("--epochs", type=int, default=20, help="of pretraining and of fine-tuning")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    (old, old_test), (new, new_test) = digits(changed=False), digits(changed=True)

    net = network()
    optimizer = BGD(net.parameters(), seed=0)
    train(net, optimizer, old, given.epochs)
    weights, posterior = copy.deepcopy(net.state_dict()), copy.deepcopy(optimizer.state_dict())
    found = {"pretrained": (accuracy(net, old_test), accuracy(net, new_test))}

    makers = {
        "SGD 0.03": lambda parameters: torch.optim.SGD(parameters, lr=0.03),
        "SGD 0.1": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        "Adam 0.0003": lambda parameters: torch.optim.Adam(parameters, lr=3e-4),
        "Adam 0.001": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
        "BGD": lambda parameters: BGD(parameters, seed=0),
    }
    for name, make in makers.items():
        net.load_state_dict(weights)
        optimizer = make(net.parameters())
        if name == "BGD":
            optimizer.load_state_dict(posterior)  # the weights again, and how certain each of them is
        train(net, optimizer, new, given.epochs)
        found[name] = (accuracy(net, old_test), accuracy(net, new_test))
    draw(found, given.out)
    return found


def draw(found: dict[str, tuple[float, float]], file: str) -> None:
    """Print and draw the accuracies."""
    print("accuracy        old data   new data")
    figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for row, (name, (old, new)) in enumerate(found.items()):
        print(f"{name:<14}{old:10.1%}{new:11.1%}")
        axis.barh(row - 0.2, 100 * old, 0.38, color="#1f4e79", label="old data" if row == 0 else None)
        axis.barh(row + 0.2, 100 * new, 0.38, color="#e0a080", label="new data" if row == 0 else None)
    axis.set(yticks=range(len(found)), yticklabels=list(found), xlabel="right, %", xlim=(0, 100))
    axis.set_title("Fine-tuned on the new data alone")
    axis.invert_yaxis()
    axis.legend(frameon=False, loc="lower right")
    figure.savefig(file, dpi=110)
    plt.close(figure)
    print(f"picture: {file}")


if __name__ == "__main__":
    main()
