"""A stream whose sensors are rewired twice, and nobody says so: it is noticed, and learnt again.

The 1,797 digits of scikit-learn come three times; from the second time on their 64 pixels arrive in another order.
Every batch is predicted before it is learnt. Needs `bgd[streams]`, takes some seconds and writes a picture:

    python examples/drifting_sensors.py --out drifting_sensors.png
"""

from __future__ import annotations

import argparse

import matplotlib
import numpy as np

from bgd import StreamClassifier
from bgd.data.tables import load_table
from bgd.streams.drift import DriftAlarm

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BATCH = 16
WINDOW = 200


def follow(x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Predict each batch, then learn it; returns what was right, surprise, doubt, and the times of alarms."""
    learner, alarm = StreamClassifier(), DriftAlarm(every=10_000)
    learner.partial_fit(x[:BATCH], y[:BATCH], classes=np.arange(10))
    right, surprise, doubt, alarms = [], [], [], []
    for start in range(BATCH, len(x), BATCH):
        rows, labels = x[start : start + BATCH], y[start : start + BATCH]
        p = learner.predict_proba(rows)
        right.append(p.argmax(1) == labels)
        surprise.append(-np.log(np.maximum(p[np.arange(len(p)), labels], 1e-6)))
        doubt.append(learner.predict_std(rows[:4]).mean(1))
        alarms += [event.at + BATCH for event in alarm.update_many(surprise[-1])]
        learner.partial_fit(rows, labels)
    return {
        "right": np.concatenate(right),
        "surprise": np.concatenate(surprise),
        "doubt": np.concatenate(doubt),
        "alarms": np.array(alarms),
    }


def smooth(values: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """The mean of the last examples."""
    total = np.cumsum(np.concatenate([[0.0], values]))
    last = np.arange(1, len(total))
    first = np.maximum(last - window, 0)
    return (total[last] - total[first]) / (last - first)


def draw(found: dict[str, np.ndarray], file: str) -> None:
    """Accuracy and doubt over time, with the alarms."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 4.4), sharex=True, layout="constrained")
    top.plot(100 * smooth(found["right"]), color="#1f4e79")
    top.set(ylabel="right, %", title=f"StreamClassifier on rewired sensors, mean of the last {WINDOW} examples")
    bottom.plot(np.arange(len(found["doubt"])) * BATCH / 4, smooth(found["doubt"], WINDOW // 4), color="#a33b20")
    bottom.set(ylabel="epistemic std", xlabel="examples")
    for axis in (top, bottom):
        for at in found["alarms"]:
            axis.axvline(at, color="#555", linestyle="--", linewidth=1)
    for at in found["alarms"]:
        top.annotate(f"alarm at {at:,}", (at, 5), xytext=(4, 0), textcoords="offset points", fontsize=8)
    top.set_ylim(0, 102)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> dict[str, np.ndarray]:
    """Follow the stream, print what happened, draw it."""
    parser = argparse.ArgumentParser(description="A stream whose sensors are rewired.")
    parser.add_argument("--out", default="drifting_sensors.png", help="where to write the picture")
    parser.add_argument("--rows", type=int, default=None, help="only the first rows")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    table = load_table("digits-rewired", seed=given.seed).first(given.rows)
    found = follow(table.x, table.y)
    times = ", ".join(f"{at:,}" for at in found["alarms"]) or "none"
    print(f"{len(table):,} examples: {found['right'].mean():.1%} right before they were learnt; alarms at: {times}")
    draw(found, given.out)
    print(f"picture: {given.out}")
    return found


if __name__ == "__main__":
    main()
