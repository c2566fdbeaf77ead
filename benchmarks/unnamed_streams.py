"""The default of BGD on streams, widths and batches that no other comparison names, beside Adam at two step sizes.

Predict a batch, then learn it once, with an MLP of two hidden layers on features of a running standardisation. No
setting of any learner was chosen here. Writes one JSON file; ``--table`` prints it as the table of docs/optimizer.md.

    python benchmarks/unnamed_streams.py --out benchmarks/unnamed_streams.json [--seeds 0 1] [--table]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from river.datasets import synth

from bgd import BGD
from stream_baselines import Network
from stream_sets import DEVELOPMENT, Data, _agrawal, _collect, _concepts
from streams import measure

LENGTH = {16: 3000, 64: 3000, 1: 600}
"""Examples of a run, by batch."""
CELLS = [(100, 16), (30, 16), (300, 16), (100, 64), (100, 1)]
"""Width and batch."""
LEARNERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "BGD": lambda params: BGD(params),
    "Adam 1e-3": lambda params: torch.optim.Adam(params, 1e-3),
    "Adam 1e-2": lambda params: torch.optim.Adam(params, 1e-2),
}
SETTING = ("stream", "width", "batch", "seed", "learner")
ADAM = ("Adam 1e-3", "Adam 1e-2")


def _binned(stream: Any, thresholds: list[float]) -> Data:
    """Numbers to predict as classes, by fixed thresholds; categories as numbers."""
    codes: dict[Any, int] = {}
    return _collect(
        ({k: codes.setdefault(v, len(codes)) if isinstance(v, str) else v for k, v in row.items()},
         int(np.digitize(y, thresholds)))
        for row, y in stream
    )  # fmt: skip


STREAMS: dict[str, Callable[[int], Data]] = {
    **{name: DEVELOPMENT[name] for name in ("Bananas", "Shuttle", "Sine", "RBF drift", "Random tree", "Waveform")},
    "RBF": lambda seed: _collect(
        synth.RandomRBF(seed_model=seed, seed_sample=seed, n_classes=4, n_features=20, n_centroids=40).take(4000)
    ),
    "LED": lambda seed: _collect(synth.LED(seed=seed, noise_percentage=0.1, irrelevant_features=True).take(4000)),
    "Mv": lambda seed: _binned(synth.Mv(seed=seed).take(4000), [-20.0, 0.0, 20.0]),
    "Agrawal, late": lambda seed: _concepts(_agrawal, [6, 7, 8, 9], 1000, seed),
}


def first(data: Data, length: int) -> Data:
    """The first examples; of a stream of several concepts a part of each."""
    step = max(len(data.rows) // length, 1)
    return Data(data.rows[::step][:length], data.labels[::step][:length])


def runs(seeds: list[int], done: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row for each stream, cell, seed and learner that is not done."""
    keys = [[row[key] for key in SETTING] for row in done]
    for seed in seeds:
        for stream, make in STREAMS.items():
            whole = make(seed)
            for width, batch in CELLS:
                data = first(whole, LENGTH[batch])
                for name, optimizer in LEARNERS.items():
                    setting = dict(zip(SETTING, (stream, width, batch, seed, name), strict=True))
                    if list(setting.values()) in keys:
                        continue
                    net = Network(optimizer, data.x.shape[1], int(data.codes.max()) + 1, seed, width)
                    yield setting | {"examples": len(data.rows)} | measure(net, data, batch)


def table(rows: list[dict[str, Any]]) -> str:
    """Mean accuracies: BGD, and by how much it is above the better Adam of that stream, width and batch."""
    heads = [f"width {w}, batch {b}" for w, b in CELLS]
    lines = [f"| stream | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    within = [0] * len(CELLS)
    for stream in STREAMS:
        cells = []
        for i, cell in enumerate(CELLS):
            found = {name: [] for name in LEARNERS}
            for r in rows:
                if (r["stream"], r["width"], r["batch"]) == (stream, *cell):
                    found[r["learner"]].append(100 * r["accuracy"])
            ours, best = mean(found["BGD"]), max(mean(found[name]) for name in ADAM)
            within[i] += ours >= best - 1
            cells.append(f"{ours:.1f} ({ours - best:+.1f})")
        lines.append(f"| {stream} | {' | '.join(cells)} |")
    counts = (f"{n} of {len(STREAMS)}" for n in within)
    return "\n".join([*lines, f"| within 1 point, or above | {' | '.join(counts)} |"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--table", action="store_true", help="print the file as a table and stop")
    asked = parser.parse_args()
    if asked.table:
        print(table([row for row in json.loads(asked.out.read_text()) if row["seed"] in asked.seeds]))
        return
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = json.loads(asked.out.read_text()) if asked.out.exists() else []
    for row in runs(asked.seeds, list(rows)):
        rows.append(row)
        asked.out.write_text("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")


if __name__ == "__main__":
    main()
