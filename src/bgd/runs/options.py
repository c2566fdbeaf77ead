"""How to run, which is no part of what is run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Threads, checkpoints and signals of a run.

    Args:
        threads: of torch. Results are the same bits for the same number; one by default, so that they are the same
            in this process, in many, and on a cluster.
        checkpoint_seconds: at most one checkpoint in this time (longer where saving is slow); 0 for every iteration.
        keep: keep the last checkpoint, with the trained network, when the run is done.
        ignore_second_signal: a second SIGINT does not end the process at once; for worker processes.

    >>> Options(threads=2).checkpoint_seconds
    30.0
    """

    threads: int = 1
    checkpoint_seconds: float = 30.0
    keep: bool = False
    ignore_second_signal: bool = False
