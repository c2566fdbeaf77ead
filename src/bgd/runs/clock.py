"""The time that a run takes, over all its sessions."""

from __future__ import annotations

import time
from typing import NamedTuple


class Times(NamedTuple):
    """Seconds since the start of the run.

    Attributes:
        seconds: wall-clock time.
        train_seconds: of training alone, measured as ``work_seconds``.
        work_seconds: processor time on a CPU, else wall-clock time.
    """

    seconds: float = 0.0
    train_seconds: float = 0.0
    work_seconds: float = 0.0


class Clock:
    """Adds up the times of a run; a session begins with those of the sessions before it.

    Training is timed in processor time on a CPU, so that other processes do not count; with a GPU the processor only
    waits, and wall-clock time is used.

    >>> clock = Clock("cpu")
    >>> clock.start(Times(seconds=10.0))
    >>> 10 <= clock.now().seconds < 11
    True
    """

    def __init__(self, device: str) -> None:
        self._work = time.process_time if device == "cpu" else time.perf_counter
        self.start(Times())

    def start(self, before: Times) -> None:
        """Begin a session after ``before``."""
        self._before = before
        self._trained = before.train_seconds
        self._started, self._started_work = time.perf_counter(), self._work()

    def start_training(self) -> None:
        """From now on the time counts as training."""
        self._training_since = self._work()

    def stop_training(self) -> None:
        """Up to now it did."""
        self._trained += self._work() - self._training_since

    def now(self) -> Times:
        """The times up to now."""
        return Times(
            self._before.seconds + time.perf_counter() - self._started,
            self._trained,
            self._before.work_seconds + self._work() - self._started_work,
        )
