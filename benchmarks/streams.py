"""Predict a batch, then learn it once: ``StreamClassifier()`` beside networks and river's learners on six streams.

Accuracy, log-loss (natural; probabilities of all learners floored at 0.001), expected calibration error (15 bins of
the highest probability) and seconds of one thread for the whole stream. SGD and Adam use the step size that was best in
accuracy on seed 7 of the same stream and batch; all others run as they are. Writes one JSON file.

    python benchmarks/streams.py --out results/streams/raw.json [--streams SEA ...] [--learners Adam ...] [--batch 16 1]
    python benchmarks/streams.py --out results/streams/raw.json --table  # the file as tables, for docs/streams.md
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stream_baselines import NAMES, TUNED, Learner, learner
from stream_sets import REPORTED, STREAMS, Data

TUNING_SEED = 7
FLOOR = 1e-3


def calibration_error(p: np.ndarray, y: np.ndarray, bins: int = 15) -> float:
    """The mean of |accuracy - confidence| over bins of confidence, weighted by their examples."""
    confidence, right = p.max(1), p.argmax(1) == y
    cell = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(cell, right - confidence, bins)
    return float(np.abs(gaps).sum() / len(y))


def measure(model: Learner, data: Data, batch: int) -> dict[str, float]:
    """One prequential run."""
    x, y, rows = data.x, data.codes, data.rows
    found, before = np.empty((len(y), int(y.max()) + 1)), time.process_time()
    for start in range(0, len(y), batch):
        part = slice(start, start + batch)
        found[part] = model.predict(rows[part], x[part])
        model.learn(rows[part], x[part], y[part])
    seconds = time.process_time() - before
    floored = np.maximum(np.nan_to_num(found), FLOOR)
    p = floored / floored.sum(1, keepdims=True)
    loss = -np.log(p[np.arange(len(y)), y]).mean()
    right = float((found.argmax(1) == y).mean())
    return {"accuracy": right, "log_loss": float(loss), "ece": calibration_error(p, y), "seconds": seconds}


def run(stream: str, name: str, batch: int, seed: int, lr: float | None) -> dict[str, Any]:
    """One row of the raw file."""
    data = STREAMS[stream](seed)
    model = learner(name, data.x.shape[1], int(data.codes.max()) + 1, seed, lr)
    settings = {"stream": stream, "learner": name, "batch": batch, "seed": seed, "lr": lr, "examples": len(data.labels)}
    return settings | measure(model, data, batch)


def tuned_lr(stream: str, name: str, batch: int) -> float | None:
    """The best step size on the tuning seed, where the learner has one."""
    if name not in TUNED:
        return None
    tried = {lr: run(stream, name, batch, TUNING_SEED, lr)["accuracy"] for lr in TUNED[name]}
    return max(tried, key=tried.__getitem__)


def table(rows: list[dict[str, Any]], batch: int, measure: str) -> str:
    """Means over the seeds that all cells have, the best of each stream in bold."""
    cells: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if row["batch"] == batch:
            cells.setdefault((row["learner"], row["stream"]), {})[row["seed"]] = row[measure]
    names = [name for name in NAMES if all((name, stream) in cells for stream in REPORTED)]
    seeds = sorted(set.intersection(*(set(cells[name, stream]) for name in names for stream in REPORTED)))
    scale, digits, best_of = (100.0, 1, max) if measure == "accuracy" else (1.0, 3, min)
    means = {
        key: round(scale * float(np.mean([values[seed] for seed in seeds])), digits)
        for key, values in cells.items()
        if key[0] in names
    }
    best = {stream: best_of(means[name, stream] for name in names) for stream in REPORTED}
    title = f"{measure.replace('_', '-')}, batch {batch}, seeds {', '.join(map(str, seeds))}"
    lines = [f"| {title} | " + " | ".join(REPORTED) + " |", "|---" * (len(REPORTED) + 1) + "|"]
    for name in names:
        shown = (f"{means[name, stream]:.{digits}f}" for stream in REPORTED)
        bold = (f"**{t}**" if means[name, s] == best[s] else t for t, s in zip(shown, REPORTED, strict=True))
        lines.append(f"| {name} | " + " | ".join(bold) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--streams", nargs="+", default=list(REPORTED), choices=list(STREAMS))
    parser.add_argument("--learners", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--batch", nargs="+", type=int, default=[16, 1])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--table", action="store_true", help="print the file as tables and stop")
    asked = parser.parse_args()
    if asked.table:
        found = json.loads(asked.out.read_text())
        print("\n".join(table(found, b, m) for b in asked.batch for m in ("accuracy", "log_loss", "ece")))
        return
    torch.set_num_threads(1)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    rows = json.loads(asked.out.read_text()) if asked.out.exists() else []
    done = {(r["stream"], r["learner"], r["batch"], r["seed"]) for r in rows}
    for batch in asked.batch:
        for name in asked.learners:
            for stream in asked.streams:
                seeds = [seed for seed in asked.seeds if (stream, name, batch, seed) not in done]
                lr = tuned_lr(stream, name, batch) if seeds else None
                for seed in seeds:
                    rows.append(row := run(stream, name, batch, seed, lr))
                    asked.out.write_text("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")
                    print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}, flush=True)


if __name__ == "__main__":
    main()
