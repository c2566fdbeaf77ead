"""What a run measured: the same bytes however often it was interrupted; ``Machine`` has what depends on the machine.

All accuracies lie in [0, 1].
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from bgd.inference import Inference
from bgd.runs.config import RunConfig, Strict


class Evaluation(Strict):
    """Accuracies on all tasks at one iteration. The one at iteration 0 is of the untrained network."""

    iteration: int = Field(description="number of batches trained on")
    stage: int | None = Field(
        default=None, description="the row of R that this is; None between stages and at the start"
    )
    seen: int = Field(description="tasks whose share of the iterations, N / T, has begun by then")
    accuracy: list[float] = Field(description="of each task, by the run's own inference method")
    loss: list[float] = Field(description="mean cross-entropy of each task's test part, by MAP")
    by_inference: dict[Inference, list[float]] = Field(
        description="of each task, by each method measured: map always; the others for posteriors, all at the end"
    )
    calibration_error: float | None = Field(
        default=None, description="of all tasks' test parts, by MAP, at the end: ECE over 15 bins of equal width"
    )


class Fit(Strict):
    """An evaluation on training images, without augmentation."""

    iteration: int
    accuracy: list[float] = Field(description="of each task, by the run's own inference method")
    loss: list[float] = Field(description="mean cross-entropy of each task's images, by MAP")


class StdHistogram(Strict):
    """How many weights have a std in [edges[b], edges[b+1]).

    Edges are a part, as long as needed, of one grid that all histograms share (1e-6 to 10); what lies outside that
    grid counts in the first or last bin.
    """

    iteration: int
    after: str = Field(description="'start', the name of the task just ended, or the iteration")
    edges: list[float] = Field(description="evenly spaced in the logarithm, one more than counts")
    counts: list[int]
    smallest: float
    largest: float


class CurvePoint(Strict):
    """The mean training loss over the iterations since the previous point."""

    iteration: int
    loss: float


class Alarm(Strict):
    """The learner's surprise rose above what its own past explains; see :mod:`bgd.streams.drift`."""

    at: int = Field(description="the example that raised it, from 0")
    since: int = Field(description="about where the change began")
    evidence: float


class Prequential(Strict):
    """What a stream measured whose every example was predicted before it was learnt."""

    examples: int
    accuracy: float
    log_loss: float = Field(description="mean of -log p(y); a probability below 1e-6 counts as 1e-6")
    calibration_error: float = Field(description="ECE over 15 bins of equal width")
    bins: list[tuple[float, float, float]] = Field(description="of each: examples, sum of confidences, right labels")
    alarms: list[Alarm]


class Machine(Strict):
    """What depends on the machine, and is no part of the result."""

    seconds: float = Field(
        default=0.0, description="wall-clock time over all sessions of the run, start-up not included"
    )
    work_seconds: float = Field(
        default=0.0,
        description="the same; on a CPU in processor time, which other processes do not lengthen",
    )
    train_seconds: float = Field(default=0.0, description="of training alone, otherwise as work_seconds")
    sessions: int = Field(default=1, description="how often the run was started or resumed")
    threads: int = 1
    keep: bool = Field(default=False, description="whether the last checkpoint is to be kept")
    settings: dict[str, Any] = Field(
        default_factory=dict,
        description="all settings of the method: those of the run, and the defaults of its version",
    )
    versions: dict[str, str] = Field(
        default_factory=dict, description="of packages; digests of the code and of data that is not published"
    )
    import_paths: list[str] = Field(
        default_factory=list, description="folders of the user's own modules, which a resumed run imports again"
    )
    platform: str = ""
    commit: str | None = None
    command: str = ""
    finished: str = Field(default="", description="UTC, ISO 8601")

    @property
    def cost(self) -> float:
        """Seconds of work where they were measured, else of wall-clock time."""
        return self.work_seconds or self.seconds


class RunResult(Strict):
    """What a run measured.

    ``R[i][j]`` is the accuracy on task j after stage i (after task i, in a discrete stream; after 1/T of a continuous
    one). A joint run (Offline) has one row.
    """

    config: RunConfig
    task_names: list[str]
    iterations: int
    stages: list[int] = Field(description="iterations at which the rows of R were measured")
    R: list[list[float]]
    average_accuracy: float = Field(description="over all tasks at the end, by the run's own inference method")
    by_inference: dict[Inference, float] = Field(description="the same by each inference method that applies")
    metrics: dict[str, float] = Field(
        description="forgetting, backward_transfer, forward_transfer, anytime_accuracy; those that are defined"
    )
    evaluations: list[Evaluation]
    fits: list[Fit] = Field(default=[], description="at the times of the evaluations, where configured")
    curve: list[CurvePoint]
    stds: list[StdHistogram] = Field(description="at the start and after each stage; empty without a posterior")
    warnings: list[str] = Field(description="such as that the posterior has collapsed")
    data_note: str = Field(default="", description="what a reader must know of the data, such as a substitute")
    upper_bound: bool = Field(default=False, description="a reference such as Offline, which never counts as best")
    prequential: Prequential | None = Field(default=None, description="of a prequential stream alone")
    machine: Machine | None = None
