"""Two hospitals learn apart and are merged; then a patient withdraws: all exact, without the data of the others.

The posterior of the exact head is a sum over examples: adding two is learning both, subtracting an example is never
having seen it. Each result is compared with training from scratch. Takes a second and writes a picture:

    python examples/merge_and_unlearn.py --out merge_and_unlearn.png
"""

from __future__ import annotations

import argparse

import matplotlib
import numpy as np

from bgd.data import load
from bgd.exact import Head, forget, init, merge, predict, update

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RIDGE = 0.1


def features(images: np.ndarray, units: int) -> np.ndarray:
    """A fixed random hidden layer, the same everywhere."""
    rng = np.random.default_rng(0)
    inputs = np.hstack([images / 127.5 - 1, np.ones((len(images), 1))])
    return np.maximum(inputs @ rng.normal(size=(inputs.shape[1], units)) / 8, 0)


def learn(x: np.ndarray, y: np.ndarray) -> Head:
    """A head that has seen these rows, 32 at a time."""
    head = init(x.shape[1], outputs=10, ridge=RIDGE)
    for start in range(0, len(x), 32):
        head = update(head, x[start : start + 32], np.eye(10)[y[start : start + 32]])
    return head


def accuracy(head: Head, x: np.ndarray, y: np.ndarray) -> float:
    """The share of right answers."""
    return float((predict(head, x)[0].argmax(1) == y).mean())


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Learn apart, merge, unlearn; print and draw accuracies, and the distance from training from scratch."""
    parser = argparse.ArgumentParser(description="Merge and unlearn.")
    parser.add_argument("--out", default="merge_and_unlearn.png", help="where to write the picture")
    parser.add_argument("--units", type=int, default=300, help="features")
    given = parser.parse_args(arguments)
    data = load("digits")
    x, test_x = (features(part.images.flatten(1).numpy(), given.units) for part in (data.train, data.test))
    y, test_y = (part.labels.numpy() for part in (data.train, data.test))
    low = y < 5  # one hospital has only ever seen 0 to 4, the other only 5 to 9
    here, there = learn(x[low], y[low]), learn(x[~low], y[~low])
    both = merge(here, there)
    gone, kept = slice(0, 100), slice(100, None)
    without = forget(both, x[gone], np.eye(10)[y[gone]])
    scratch = {"both": learn(x, y), "without": learn(x[kept], y[kept])}
    found = {
        "only 0 to 4": accuracy(here, test_x, test_y),
        "only 5 to 9": accuracy(there, test_x, test_y),
        "merged": accuracy(both, test_x, test_y),
        "100 unlearned": accuracy(without, test_x, test_y),
    }
    for name, share in found.items():
        print(f"{name:<16}{share:7.1%}")
    apart = {
        "merged": np.abs(predict(both, test_x)[0] - predict(scratch["both"], test_x)[0]).max(),
        "unlearned": np.abs(predict(without, test_x)[0] - predict(scratch["without"], test_x)[0]).max(),
    }
    for name, distance in apart.items():
        print(f"{name}: predictions differ from training from scratch by at most {distance:.0e}")
    figure, axis = plt.subplots(figsize=(7, 2.6), layout="constrained")
    axis.barh(list(found), [100 * share for share in found.values()], color=["#bbb", "#bbb", "#a33b20", "#1f4e79"])
    axis.bar_label(axis.containers[0], fmt="%.1f", padding=3)
    axis.set(xlabel="right on all ten digits, %", xlim=(0, 105))
    axis.invert_yaxis()
    figure.savefig(given.out, dpi=110)
    plt.close(figure)
    print(f"picture: {given.out}")
    return found | {f"distance, {name}": float(distance) for name, distance in apart.items()}


if __name__ == "__main__":
    main()
