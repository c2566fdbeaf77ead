"""What all executors share: jobs, their outcomes, and the function that does one job.

An executor takes jobs and yields their outcomes in the order in which they end. A job is small and picklable (a
configuration, a folder, options), and doing it again after a crash continues from its checkpoint: all that a cluster
needs too. The same job gives the same result file everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bgd.errors import BGDError
from bgd.plugins import import_paths
from bgd.runs.config import RunConfig
from bgd.runs.environment import keep_memory
from bgd.runs.errors import FolderInUse, Interrupted
from bgd.runs.folder import write_failure
from bgd.runs.options import Options
from bgd.runs.progress import Progress, Report
from bgd.runs.result import RunResult
from bgd.runs.run import run_validated


@dataclass(frozen=True)
class Job:
    """One run to do: all that a worker needs.

    Args:
        config: a validated configuration (:func:`bgd.runs.validation.validate`).
        folder: of the run.
        options: threads and checkpoints.
        import_paths: folders in which the worker also looks for modules, such as that of a TOML file beside which
            ``method = "tether:Tether"`` finds ``tether.py``.

    >>> Job(RunConfig(method="sgd"), Path("runs/1")).options.threads
    1
    """

    config: RunConfig
    folder: Path
    options: Options = field(default_factory=Options)
    import_paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a job ended: with a result, an interruption (to be resumed), or an error with its traceback file.

    >>> Outcome(Job(RunConfig(method="sgd"), Path("runs/1")), error="the disk is full").interrupted
    False
    """

    job: Job
    result: RunResult | None = None
    error: str | None = None
    traceback: Path | None = None
    interrupted: bool = False


ProgressCallback = Callable[[Job, Progress], None]
"""Called with the progress of each job."""


class Executor(Protocol):
    """Does jobs and yields their outcomes as they end; a failed one does not stop the rest.

    At a stop request (SIGINT, SIGTERM) every run saves its state, and the interrupted ones are yielded; jobs that have
    not begun are not.
    """

    def __call__(self, jobs: Sequence[Job], progress: ProgressCallback) -> Iterator[Outcome]:
        """Do the jobs."""


def attempt(job: Job, report: Report | None = None) -> Outcome:
    """Do one job and return how it ended; the traceback of an error goes to ``failure.txt`` in its folder.

    >>> import tempfile
    >>> outcome = attempt(Job(RunConfig(method="sdg"), Path(tempfile.mkdtemp())))
    >>> outcome.error, outcome.traceback.name
    ("no method 'sdg': did you mean 'sgd'?", 'failure.txt')
    """
    keep_memory()
    try:
        with import_paths(job.import_paths):
            return Outcome(job, run_validated(job.config, job.folder, job.options, report))
    except Interrupted as error:
        return Outcome(job, error=str(error), interrupted=True)
    except FolderInUse as error:  # its failure.txt would be in the folder of a run that has not failed
        return Outcome(job, error=str(error))
    except Exception as error:
        message = str(error) if isinstance(error, BGDError) else f"{type(error).__name__}: {error}"
        return Outcome(job, error=message, traceback=write_failure(job.folder))
