"""Processor time of the stream learner beside river's learners, on whole streams, predicting and then learning.

All learners take the same 320 rows one after the other, so that whatever else the machine does slows all of them.
Learners of one row at a time take the rows of a batch one by one.

    python benchmarks/stream_speed.py --batch 16 [--streams SEA ...] [--examples 4000]
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from stream_baselines import NAMES, learner
from stream_sets import REPORTED, STREAMS

LEARNERS = ("StreamClassifier", "adaptive forest", "logistic regression")
BLOCK = 320


def measure(stream: str, names: list[str], batch: int, examples: int) -> dict[str, tuple[float, float]]:
    """For each learner: ms a batch, the mean over the stream and the median."""
    data = STREAMS[stream](0)
    x, y, rows = data.x[:examples], data.codes[:examples], data.rows[:examples]
    models = {name: learner(name, x.shape[1], int(data.codes.max()) + 1, 0) for name in names}
    spent: dict[str, list[float]] = {name: [] for name in names}
    for block in range(0, len(y) - BLOCK + 1, BLOCK):
        for name, model in models.items():
            before = time.process_time()
            for start in range(block, block + BLOCK, batch):
                part = slice(start, start + batch)
                model.predict(rows[part], x[part])
                model.learn(rows[part], x[part], y[part])
            spent[name].append(1e3 * (time.process_time() - before) * batch / BLOCK)
    return {name: (statistics.fmean(times), statistics.median(times)) for name, times in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--streams", nargs="+", default=list(REPORTED), choices=list(STREAMS))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=NAMES)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for stream in asked.streams:
        found = measure(stream, asked.learners, asked.batch, asked.examples)
        shown = ", ".join(f"{name} {mean:.3f} (median {median:.3f})" for name, (mean, median) in found.items())
        print(f"{stream}, batch {asked.batch}, ms: {shown}", flush=True)


if __name__ == "__main__":
    main()
