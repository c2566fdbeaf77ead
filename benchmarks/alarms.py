"""False alarms of ``StreamClassifier(alarms_per=...)``, and its delay after a switch of concept.

Each stream has one concept for ``CALM`` rows, then another for ``AFTER`` rows. False alarms are those of the first
part, in 1,000 rows; the delay is that of the first alarm of the second part. Rows come in batches of 16, whose labels
are learnt once. Writes one JSON file; ``--table`` prints it as the table of docs/streams.md.

    python benchmarks/alarms.py --out results/streams/alarms.json [--seeds 0 1] [--table]   # a minute for eight seeds
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from river.datasets import synth

from bgd import StreamClassifier
from stream_sets import Data, _agrawal, _collect

CALM, AFTER, BATCH = 4000, 1000, 16


def _switched(before: Any, after: Any) -> Data:
    first, second = _collect(before.take(CALM)), _collect(after.take(AFTER))
    return Data(first.rows + second.rows, first.labels + second.labels)


def _sea(variant: int, seed: int) -> Any:
    return synth.SEA(variant=variant, noise=0.1, seed=seed)


def _sine(kind: int, seed: int) -> Any:
    return synth.Sine(classification_function=kind, seed=seed, has_noise=True)


def _hyperplane(seed: int) -> Any:
    return synth.Hyperplane(seed=seed, n_features=10, n_drift_features=0, mag_change=0.0, noise_percentage=0.05)


STREAMS: dict[str, Callable[[int], Data]] = {
    "SEA": lambda seed: _switched(_sea(seed % 4, 2 * seed), _sea((seed + 1) % 4, 2 * seed + 1)),
    "Agrawal": lambda seed: _switched(_agrawal(seed % 10, 2 * seed), _agrawal((seed + 1) % 10, 2 * seed + 1)),
    "Sine": lambda seed: _switched(_sine(seed % 4, 2 * seed), _sine((seed + 1) % 4, 2 * seed + 1)),
    "Hyperplane": lambda seed: _switched(_hyperplane(2 * seed), _hyperplane(2 * seed + 1)),
}
"""The concepts before and after the switch depend on the seed."""


def run(stream: str, seed: int, alarms_per: float) -> dict[str, Any]:
    """One row of the raw file: the rows that raised an alarm."""
    data = STREAMS[stream](seed)
    x, y, before = data.x, data.codes, time.process_time()
    learner = StreamClassifier(random_state=seed, alarms_per=alarms_per)
    for start in range(0, len(y), BATCH):
        learner.partial_fit(x[start : start + BATCH], y[start : start + BATCH])
    seconds = round(time.process_time() - before, 3)
    setting = {"stream": stream, "seed": seed, "alarms_per": alarms_per, "calm": CALM, "after": AFTER, "batch": BATCH}
    return setting | {"alarms": [event.at for event in learner.events_], "seconds": seconds}


def table(rows: list[dict[str, Any]]) -> str:
    """Means with their standard errors, medians of the delays, and switches without an alarm."""
    lines = []
    for alarms_per in sorted({row["alarms_per"] for row in rows}):
        own = [row for row in rows if row["alarms_per"] == alarms_per]
        seeds = len({row["seed"] for row in own})
        lines += [
            f"| `alarms_per={alarms_per:g}`, {seeds} seeds | false alarms in 1,000 rows, at most {1000 / alarms_per:g} "
            f"was set | rows from the switch to the alarm, median | switches missed, of {seeds} |",
            "|---|---|---|---|",
        ]
        lines += [_line(stream, [row for row in own if row["stream"] == stream]) for stream in STREAMS]
        lines.append("")
    return "\n".join(lines)


def _line(stream: str, rows: list[dict[str, Any]]) -> str:
    rates = [1000 * sum(at < row["calm"] for at in row["alarms"]) / row["calm"] for row in rows]
    delays = [[at - row["calm"] for at in row["alarms"] if at >= row["calm"]] for row in rows]
    found = [one[0] for one in delays if one]
    error = statistics.stdev(rates) / math.sqrt(len(rates))
    middle = f"{statistics.median(found):.0f}" if found else "none"
    return f"| {stream} | {statistics.mean(rates):.2f} ± {error:.2f} | {middle} | {len(rows) - len(found)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(8)))
    parser.add_argument("--alarms-per", nargs="+", type=float, default=[1000.0, 10_000.0])
    parser.add_argument("--table", action="store_true", help="print the file as tables and stop")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = json.loads(asked.out.read_text()) if asked.out.exists() else []
    if asked.table:
        print(table(rows))
        return
    done = {(row["stream"], row["seed"], row["alarms_per"]) for row in rows}
    for alarms_per in asked.alarms_per:
        for stream in STREAMS:
            for seed in asked.seeds:
                if (stream, seed, alarms_per) not in done:
                    rows.append(run(stream, seed, alarms_per))
                    asked.out.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
