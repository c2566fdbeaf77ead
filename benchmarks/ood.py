"""Which uncertainty tells MNIST from what is not MNIST: AUROC of the exact head, of BGD and of a plain network.

    BGD_DATA=... python benchmarks/ood.py measure results/ood 0 1 2    # a minute a seed on one core
    python benchmarks/ood.py table results/ood                        # Markdown, from what was measured

Learners see the first 12,000 training images of MNIST once, and the networks again and again, up to 20 epochs. An AUROC
is the probability that an image from elsewhere has the larger score than a test image of MNIST: 50 % is chance.
"""

from __future__ import annotations

import csv
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from bgd.data import limit, load
from bgd.inference import Prediction, entropy
from bgd.methods import create
from bgd.nets.registry import build_net
from bgd.scenarios import Discrete, permute, scenario

EPOCHS, SAMPLES, COUNT, TRAIN = (1, 20), 20, 5000, 12_000
Scores = Callable[[Tensor], dict[str, Tensor]]


def others(test: Tensor) -> dict[str, Tensor]:
    """Images that are not MNIST's, as many as are compared."""
    pixels = torch.randperm(784, generator=torch.Generator().manual_seed(1))
    found = {name: images(load(name).test.images) for name in ("fashion-mnist", "notmnist")}
    return found | {"permuted mnist": test.flatten(1)[:, pixels].view_as(test)}


def images(raw: Tensor) -> Tensor:
    return raw[:COUNT].float() / 255


def exact_head(learner: object) -> Scores:
    def score(x: Tensor) -> dict[str, Tensor]:
        solution = learner.exact.solution()
        return {"phi^T R phi": solution.variance(x), "softmax entropy": entropy(learner.predict(x).softmax(1))}

    return score


def bgd(learner: object) -> Scores:
    def score(x: Tensor) -> dict[str, Tensor]:
        sampled = learner.predict_samples(x, SAMPLES).softmax(-1)
        prediction = Prediction(sampled, learner.predict(x).softmax(-1))
        found = {"mutual information": prediction.mutual_information, "entropy of the mean": prediction.entropy}
        return found | {"softmax entropy": entropy(prediction.at_mean)}

    return score


def plain(learner: object) -> Scores:
    return lambda x: {"softmax entropy": entropy(learner.predict(x).softmax(1))}


def measured(seed: int) -> Iterator[list[object]]:
    data = limit(load("mnist"), TRAIN)
    test, labels = images(data.test.images), data.test.labels[:COUNT]
    elsewhere = others(test)
    rules = scenario("discrete task-agnostic")
    tasks = permute(data, 1, shared_head=True, seed=seed)
    makers = {
        "exact head, 2,000 Fourier": ("exact-head", {"units": 2000, "seed": seed}, exact_head, (1,)),
        "BGD": ("bgd", {"seed": seed}, bgd, EPOCHS),
        "Adam 0.001": ("adam", {"lr": 0.001}, plain, EPOCHS),
    }
    for name, (method, settings, scores_of, epochs) in makers.items():
        net = build_net("mlp", (1, 28, 28), 10, init="xavier", seed=seed, widths=(200, 200), settings={})
        learner = create(method, net, tasks.heads, rules, **settings)
        stream, began = Discrete(tasks, rules, epochs=max(epochs), seed=seed), time.process_time()
        for i, (x, y, _) in enumerate(stream):
            learner.observe(x, y)
            if (i + 1) % (len(stream) // max(epochs)) or (epoch := (i + 1) * max(epochs) // len(stream)) not in epochs:
                continue
            score, seconds = scores_of(learner), round(time.process_time() - began, 1)
            accuracy = float((learner.predict(test).argmax(1) == labels).float().mean())
            inside = score(test)
            for where, foreign in elsewhere.items():
                outside = score(foreign)
                truth = [0] * len(test) + [1] * len(foreign)
                for kind, values in inside.items():
                    auroc = roc_auc_score(truth, torch.cat([values, outside[kind]]).double().numpy())
                    yield [name, epoch, seed, kind, where, f"{auroc:.6f}", f"{accuracy:.4f}", seconds]


def measure(folder: Path, seeds: list[int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        with (folder / f"ood-{seed}.csv").open("w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(["learner", "epochs", "seed", "score", "against", "auroc", "accuracy", "seconds"])
            for row in measured(seed):
                out.writerow(row)
                file.flush()


def table(folder: Path) -> None:
    rows = [row for path in sorted(folder.glob("ood-*.csv")) for row in csv.DictReader(path.open())]
    against = list(dict.fromkeys(row["against"] for row in rows))
    print(f"| learner | epochs | score | {' | '.join(against)} | accuracy | s |")
    print("|---" * (len(against) + 5) + "|")
    for key in dict.fromkeys((row["learner"], row["epochs"], row["score"]) for row in rows):
        own = [row for row in rows if (row["learner"], row["epochs"], row["score"]) == key]
        cells = [describe([100 * float(row["auroc"]) for row in own if row["against"] == where]) for where in against]
        accuracy = describe([100 * float(row["accuracy"]) for row in own if row["against"] == against[0]])
        seconds = statistics.mean(float(row["seconds"]) for row in own)
        print(f"| {' | '.join(key)} | {' | '.join(cells)} | {accuracy} | {seconds:.0f} |")


def describe(values: list[float]) -> str:
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


if __name__ == "__main__":
    action, target, *numbers = sys.argv[1:]
    if action == "measure":
        torch.set_num_threads(1)
        measure(Path(target), [int(number) for number in numbers])
    else:
        table(Path(target))
