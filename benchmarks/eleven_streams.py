"""``StreamClassifier()`` beside other learners on eleven streams that nothing was chosen on.

Predict a batch, then learn it once, as in ``benchmarks/streams.py``. Adam has the best, in accuracy, of three step
sizes on the same stream and seed, which no other learner is given. Writes one JSON file; ``--table`` prints it as the
table of docs/streams.md.

    python benchmarks/eleven_streams.py --out results/streams/eleven.json [--table]   # some minutes on one core
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from river.datasets import synth

from stream_baselines import NAMES, learner
from stream_sets import Data, _agrawal, _collect, _concepts
from streams import measure

ROWS, BATCH = 4000, 16
LEARNERS = tuple(name for name in NAMES if name != "SGD")
STEP_SIZES = (0.001, 0.003, 0.01)


def _data(x: np.ndarray, y: np.ndarray) -> Data:
    return Data([dict(enumerate(row)) for row in x.tolist()], y.tolist())


def _turning(seed: int) -> Data:
    """A linear boundary among five columns that turns by half a circle."""
    x, angle = np.random.default_rng(seed).normal(size=(ROWS, 5)), np.linspace(0.0, np.pi, ROWS)
    return _data(x, (x[:, 0] * np.cos(angle) + x[:, 1] * np.sin(angle) + 0.3 * x[:, 2] > 0).astype(int))


def _in_turn(seed: int) -> Data:
    """Two concepts in turn, every 500 rows."""
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, (ROWS, 4))
    first = np.arange(ROWS) // 500 % 2 == 0
    return _data(x, np.where(first, x[:, 0] * x[:, 1] > 0, x[:, 0] + x[:, 2] > 0).astype(int))


def _many_classes(seed: int) -> Data:
    """Forty clouds in eight dimensions."""
    rng = np.random.default_rng(seed)
    y, centres = rng.integers(0, 40, ROWS), rng.normal(size=(40, 8))
    return _data(centres[y] + 0.5 * rng.normal(size=(ROWS, 8)), y)


def _rare(seed: int) -> Data:
    """Two percent of one class, a small ball among six columns."""
    rng = np.random.default_rng(seed)
    y = (rng.random(ROWS) < 0.02).astype(int)
    return _data(np.where(y[:, None] == 1, 1.5 + 0.4 * rng.normal(size=(ROWS, 6)), rng.normal(size=(ROWS, 6))), y)


def _categories(seed: int) -> Data:
    """Six columns of five categories as numbers; a random table of the pairs of two columns gives the class."""
    rng = np.random.default_rng(seed)
    x, pairs = rng.integers(0, 5, (ROWS, 6)), rng.integers(0, 2, (5, 5))
    wrong = rng.random(ROWS) < 0.1
    return _data(x.astype(float), pairs[x[:, 0], x[:, 1]] ^ wrong)


def _missing(seed: int) -> Data:
    """A quadratic boundary; a quarter of the values are missing, given as 0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, 6))
    y = (x[:, 0] + x[:, 1] - x[:, 2] + 0.5 * x[:, 3] ** 2 > 0.5).astype(int)
    return _data(np.where(rng.random(x.shape) < 0.25, 0.0, x), y)


STREAMS: dict[str, Callable[[int], Data]] = {
    "a boundary that turns slowly": _turning,
    "two concepts in turn, every 500 rows": _in_turn,
    "40 classes": _many_classes,
    "2 % of one class": _rare,
    "categories as numbers, their pairs count": _categories,
    "a quarter of the values missing, as 0": _missing,
    "LED without drift, 20 % noise": lambda seed: _collect(synth.LED(seed=seed, noise_percentage=0.2).take(ROWS)),
    "random RBF, 8 columns": lambda seed: _collect(
        synth.RandomRBF(seed_model=seed, seed_sample=seed, n_classes=6, n_features=8, n_centroids=30).take(ROWS)
    ),
    "Agrawal, concepts 6 to 9": lambda seed: _concepts(_agrawal, [6, 7, 8, 9], ROWS // 4, seed),
    "anomalies of a sine": lambda seed: _collect(
        (row, int(label)) for row, label in synth.AnomalySine(n_samples=ROWS, n_anomalies=ROWS // 5, seed=seed)
    ),
    "Hyperplane, 20 columns, fast": lambda seed: _collect(
        synth.Hyperplane(seed=seed, n_features=20, n_drift_features=10, mag_change=0.01, noise_percentage=0.05).take(
            ROWS
        )
    ),
}


def run(stream: str, name: str, seed: int, lr: float | None) -> dict[str, Any]:
    """One row of the raw file."""
    data = STREAMS[stream](seed)
    model = learner(name, data.x.shape[1], int(data.codes.max()) + 1, seed, lr)
    settings = {"stream": stream, "learner": name, "batch": BATCH, "seed": seed, "lr": lr, "examples": len(data.labels)}
    return settings | measure(model, data, BATCH)


def table(rows: list[dict[str, Any]]) -> str:
    """Accuracy in percent and log-loss, the best in bold; of a learner with step sizes the best one."""
    lines = [f"| | {' | '.join(LEARNERS)} |", "|---" * (len(LEARNERS) + 1) + "|"]
    firsts = [0, 0]
    for stream in STREAMS:
        own = [row for row in rows if row["stream"] == stream]
        best = {
            name: max((row for row in own if row["learner"] == name), key=lambda row: float(row["accuracy"]))
            for name in LEARNERS
        }
        shown = {name: (round(100 * row["accuracy"], 1), round(row["log_loss"], 2)) for name, row in best.items()}
        top = max(accuracy for accuracy, _ in shown.values())
        firsts[0] += shown[LEARNERS[0]][0] == top
        firsts[1] += best[LEARNERS[0]]["log_loss"] == min(row["log_loss"] for row in best.values())
        cells = (f"**{a:.1f}** ({loss:.2f})" if a == top else f"{a:.1f} ({loss:.2f})" for a, loss in shown.values())
        lines.append(f"| {stream} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"First in accuracy on {firsts[0]} of {len(STREAMS)}, in log-loss on {firsts[1]}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--streams", nargs="+", default=list(STREAMS), choices=list(STREAMS))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=LEARNERS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", action="store_true", help="print the file as a table and stop")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = json.loads(asked.out.read_text()) if asked.out.exists() else []
    if asked.table:
        print(table(rows))
        return
    torch.set_num_threads(1)
    done = {(row["stream"], row["learner"], row["seed"], row["lr"]) for row in rows}
    for name in asked.learners:
        for stream in asked.streams:
            for lr in STEP_SIZES if name == "Adam" else (None,):
                if (stream, name, asked.seed, lr) not in done:
                    rows.append(run(stream, name, asked.seed, lr))
                    asked.out.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
