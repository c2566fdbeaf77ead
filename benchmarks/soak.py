"""A million steps: do memory, open files and the time of a step stay flat?

    python benchmarks/soak.py bgd --steps 1000000 --out benchmarks/soak
    python benchmarks/soak.py stream --steps 1000000 --out benchmarks/soak

Writes ``<kind>.jsonl``, a line for each hundredth of the steps (resident memory, file descriptors, live Python objects,
the median processor time of a step), and draws ``soak.png`` from all such files in the folder.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from bgd import BGD

PAGE = os.sysconf("SC_PAGE_SIZE")


def bgd_steps() -> Callable[[int], None]:
    """BGD as by default on a tiny network, whose data changes all the time."""
    torch.manual_seed(0)
    model = nn.Linear(8, 4)
    optimizer = BGD(model.parameters(), seed=0)
    x = torch.randn(64, 4, 8)

    def step(i: int) -> None:
        batch = x[i % 64]
        optimizer.zero_grad()
        F.cross_entropy(model(batch), (batch.argmax(1) + i // 1000) % 4).backward()
        optimizer.step()

    return step


def stream_steps() -> Callable[[int], None]:
    """The stream learner, which predicts each example and then learns it; its concept changes every 10,000 examples."""
    from bgd import StreamClassifier

    rng = np.random.default_rng(0)
    learner = StreamClassifier().partial_fit(rng.normal(size=(1, 8)), [0], classes=range(4))

    def step(i: int) -> None:
        row = rng.normal(size=(1, 8))
        learner.predict(row)
        learner.partial_fit(row, (row[:, :4].argmax(1) + i // 10000) % 4)

    return step


KINDS = {"bgd": bgd_steps, "stream": stream_steps}


def resident() -> float:
    """Resident memory in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


def soak(kind: str, steps: int, out: Path) -> None:
    """Take the steps, and write a line for each hundredth of them."""
    step, every = KINDS[kind](), max(1, steps // 100)
    out.mkdir(parents=True, exist_ok=True)
    with (out / f"{kind}.jsonl").open("w") as file:
        for first in range(0, steps, every):
            times = []
            for i in range(first, first + every):
                began = time.process_time()
                step(i)
                times.append(time.process_time() - began)
            gc.collect()
            record = {
                "step": first + every,
                "memory_mib": round(resident(), 2),
                "descriptors": len(os.listdir("/proc/self/fd")),
                "objects": len(gc.get_objects()),
                "median_step_us": round(statistics.median(times) * 1e6, 1),
            }
            file.write(json.dumps(record) + "\n")
            file.flush()


def draw(out: Path) -> None:
    """Memory, descriptors and step time over the steps, of all kinds."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
    labels = {
        "memory_mib": "resident memory, MiB",
        "descriptors": "open files",
        "median_step_us": "median processor time, µs",
    }
    for path in sorted(out.glob("*.jsonl")):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for axis, (key, label) in zip(axes, labels.items(), strict=True):
            axis.plot([r["step"] for r in records], [r[key] for r in records], label=path.stem)
            top = max(axis.get_ylim()[1], 1.3 * max(r[key] for r in records))
            axis.set(xlabel="steps", title=label, ylim=(0, top))
    axes[0].legend()
    figure.savefig(out / "soak.png", dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "soak")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    soak(arguments.kind, arguments.steps, arguments.out)
    draw(arguments.out)
