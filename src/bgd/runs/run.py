"""One run: train, measure, save; and after any interruption continue to the same bits.

A stream is a pure function of (seed, iteration) and a learner's state dict is complete, so a checkpoint needs little
else. What was measured is in ``metrics.jsonl`` alone; the result is a pure function of it.
"""

from __future__ import annotations

from pathlib import Path

from bgd.runs.compatibility import check_compatible
from bgd.runs.config import RunConfig
from bgd.runs.environment import limited_threads
from bgd.runs.folder import RunFolder, finished, read_result
from bgd.runs.options import Options
from bgd.runs.progress import Report
from bgd.runs.randomness import own_randomness
from bgd.runs.result import RunResult
from bgd.runs.runner import Runner
from bgd.runs.stop import stop_requests
from bgd.runs.validation import validate


def run(
    config: RunConfig, folder: str | Path, options: Options | None = None, report: Report | None = None
) -> RunResult:
    """Run to the end, from the last good checkpoint in ``folder`` if there is one; a finished run is only read.

    Args:
        config: what to run.
        folder: of this run alone; made if need be.
        options: threads and checkpoints.
        report: called with the progress a few times a second.

    Raises:
        Interrupted: after SIGINT or SIGTERM; the state is saved.
        RunError: for a configuration that cannot run, a folder in use, a full disk.

    >>> import tempfile
    >>> config = RunConfig(method="sgd", setup={"tasks": {"count": 2}, "net": {"widths": [10]}})
    >>> result = run(config, tempfile.mkdtemp())
    >>> len(result.R), result.iterations, result.evaluations[0].iteration
    (2, 24, 0)
    """
    validate(config)
    return run_validated(config, Path(folder), options or Options(), report)


def run_validated(config: RunConfig, folder: Path, options: Options, report: Report | None = None) -> RunResult:
    """The same for a configuration that has passed :func:`bgd.runs.validation.validate`, as those of a plan have.

    >>> import tempfile
    >>> config = RunConfig(method="sgd", setup={"tasks": {"count": 1}, "net": {"widths": [10]}})
    >>> run_validated(config, Path(tempfile.mkdtemp()), Options()).iterations
    12
    """
    files = RunFolder(folder)
    with files.opened(config):
        check_compatible(config, folder)
        if finished(folder):
            return read_result(folder)
        randomness = own_randomness(config.seed, config.device)
        with limited_threads(options.threads), randomness, stop_requests(options.ignore_second_signal) as stop:
            return Runner(config, files, options, stop, report or _ignore).complete()


def _ignore(*_: object) -> None:
    """Nobody watches."""
