"""Learnt class by class or shuffled, the exact head is the same: by how much its scores differ on all test images.

    BGD_DATA=... OMP_NUM_THREADS=1 python benchmarks/order.py fashion-mnist

The features are fixed first, from the same images, since those of a stream come from its first images. Every precision
of the products is compared with the head that learnt all images at once, shuffled, in the same precision.
"""

from __future__ import annotations

import argparse
import json

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from bgd.data import DataSet, load
from bgd.exact.features import Features, Fourier
from bgd.exact.learner import ExactLearner


def scores(data: DataSet, features: Features, order: Tensor, dtype: torch.dtype) -> Tensor:
    """Of all test images, after all training images in an order."""
    learner = ExactLearner(lambda _: features, outputs=len(data.classes), dtype=dtype)
    for rows in torch.split(order, 1024):
        x = data.train.images[rows].to(torch.get_default_dtype()) / 255
        learner.learn(x, one_hot(data.train.labels[rows].long(), len(data.classes)).to(x.dtype))
    solution = learner.solution()
    assert solution is not None
    return torch.cat([solution.mean(part / 255) for part in torch.split(data.test.images, 1000)])


def main() -> None:
    """Print one line of JSON for each precision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--units", type=int, default=1000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    data = load(given.data)
    shuffled = torch.randperm(len(data.train.labels), generator=torch.Generator().manual_seed(0))
    by_class = shuffled[data.train.labels[shuffled].argsort(stable=True)]
    for name in ("float64", "float32", "bfloat16"):
        torch.set_default_dtype(torch.float64 if name == "float64" else torch.float32)
        features = Fourier(data.train.images.shape[1:], given.units)
        features.fit(data.train.images[shuffled[:1024]].to(torch.get_default_dtype()) / 255)
        one, other = (scores(data, features, order, getattr(torch, name)) for order in (by_class, shuffled))
        right = (one.argmax(1) == data.test.labels).double().mean()
        found = {
            "data": given.data,
            "D": features.dim,
            "precision": name,
            "largest difference of a score": float((one - other).abs().max()),
            "labels that differ": int((one.argmax(1) != other.argmax(1)).sum()),
            "test images": len(one),
            "accuracy, %": round(100 * float(right), 2),
        }
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
