"""The metrics of runs as TensorBoard event files: needs the extra ``tensorboard``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from bgd.errors import MissingExtraError
from bgd.experiments.storage import run_folders
from bgd.report.files import ReportError
from bgd.report.load import to_paths


def write_events(folders: str | Path | Iterable[str | Path], out: str | Path) -> int:
    """Turn every run's ``metrics.jsonl`` into event files below ``out``; returns how many runs there were.

    Finished or not, each run gets a folder of its own name: its training loss, the test accuracy of each task and
    over all, and how small its stds have become, against the iteration.

    Raises:
        MissingExtraError: without the package tensorboard.
        ReportError: without runs.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("tensorboard", "tensorboard") from None

    runs = sorted({run for folder in to_paths(folders) for run in run_folders(folder)})
    runs = [run for run in runs if (run / "metrics.jsonl").is_file()]
    if not runs:
        raise ReportError("no runs with metrics in these folders: name the folder of a comparison, see bgd run")
    for run in runs:
        with SummaryWriter(str(Path(out) / run.parent.name / run.name)) as writer:
            for line in (run / "metrics.jsonl").read_text().splitlines():
                for tag, value, iteration in scalars(json.loads(line)):
                    writer.add_scalar(tag, value, iteration)
    return len(runs)


def scalars(record: dict[str, object]) -> list[tuple[str, float, int]]:
    """One line of metrics as (tag, value, iteration).

    >>> scalars({"kind": "loss", "iteration": 10, "loss": 0.5})
    [('training loss', 0.5, 10)]
    >>> scalars({"kind": "evaluation", "iteration": 10, "accuracy": [0.9, 0.7]})
    [('accuracy/task 1', 0.9, 10), ('accuracy/task 2', 0.7, 10), ('accuracy/all tasks', 0.8, 10)]
    """
    iteration = record.get("iteration")
    if not isinstance(iteration, int):
        return []
    found: dict[str, float] = {}
    if record["kind"] == "loss" and isinstance(record["loss"], float):
        found["training loss"] = record["loss"]
    if record["kind"] == "evaluation" and isinstance(record["accuracy"], list):
        accuracies = [float(value) for value in record["accuracy"]]
        found |= {f"accuracy/task {j + 1}": value for j, value in enumerate(accuracies)}
        found["accuracy/all tasks"] = sum(accuracies) / len(accuracies)
    if record["kind"] == "fit" and isinstance(record["accuracy"], list):
        found["accuracy/training images"] = sum(record["accuracy"]) / len(record["accuracy"])
    if record["kind"] == "stds":
        found |= {f"std/{key}": value for key in ("smallest", "largest") if isinstance(value := record[key], float)}
    return [(tag, value, iteration) for tag, value in found.items()]
