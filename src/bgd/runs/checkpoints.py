"""The checkpoints of a run: the last two, each named after its iteration and the hash of its content."""

from __future__ import annotations

import hashlib
import io
import re
import time
from pathlib import Path
from typing import Any

import torch

from bgd.files import write_atomically
from bgd.runs.metrics_file import MetricsFile

KEPT = 2
COST = 50  # saving may take one part in so many of the time
_NAME = re.compile(r"checkpoint-(\d+)-([0-9a-f]{32})\.pt")


class Checkpoints:
    """The checkpoint files in a run's folder.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> checkpoints = Checkpoints(folder, MetricsFile(folder / "metrics.jsonl"))
    >>> checkpoints.save(3, {"weights": torch.zeros(2)})
    >>> checkpoints.load()["weights"]
    tensor([0., 0.])
    """

    def __init__(self, folder: Path, metrics: MetricsFile) -> None:
        self.folder, self.metrics = folder, metrics
        self.damaged: list[str] = []

    def paths(self) -> list[Path]:
        """Newest first; not verified."""
        found = [path for path in self.folder.glob("checkpoint-*.pt") if _NAME.fullmatch(path.name)]
        return sorted(found, key=_iteration, reverse=True)

    def save(self, iteration: int, state: dict[str, Any]) -> None:
        """Write a checkpoint; older ones are removed only once it is on the disk."""
        buffer = io.BytesIO()
        torch.save({**state, "metrics": self.metrics.mark()}, buffer)
        content = buffer.getvalue()
        name = f"checkpoint-{iteration}-{hashlib.sha256(content).hexdigest()[:32]}.pt"
        write_atomically(self.folder / name, content)
        others = [path for path in self.paths() if path.name != name]
        for old in others[KEPT - 1 :]:
            old.unlink()

    def load(self) -> dict[str, Any] | None:
        """The newest checkpoint whose hash is right and whose metrics are still in the file, or None.

        Damaged ones are removed, since they would be kept instead of new ones, and listed in ``damaged``.
        """
        for path in self.paths():
            content = path.read_bytes()
            if path.name.endswith(f"-{hashlib.sha256(content).hexdigest()[:32]}.pt"):
                # to the CPU, from where a learner loads its state: the GPU that wrote it may be another one, or full
                state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
                if self.metrics.matches(state["metrics"]):
                    return state
            path.unlink()
            self.damaged.append(path.name)
        return None

    def remove(self, keep: int = 0) -> None:
        """Remove all but the newest ``keep``."""
        for path in self.paths()[keep:]:
            path.unlink()


def _iteration(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else -1


class CheckpointTimer:
    """When the next checkpoint is due: after ``seconds``, or later where saving takes long; always where it is 0.

    >>> CheckpointTimer(seconds=0).due(), CheckpointTimer(seconds=30).due()
    (True, False)
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._cost = 0.0
        self._last = time.perf_counter()

    def due(self) -> bool:
        """Whether a checkpoint should be saved now."""
        wait = max(self.seconds, COST * self._cost) if self.seconds else 0
        return time.perf_counter() - self._last >= wait

    def saved(self, began: float) -> None:
        """Count from now, with the cost of a save that began at ``began`` (``time.perf_counter``)."""
        self._last = time.perf_counter()
        self._cost = self._last - began
