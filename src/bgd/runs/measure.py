"""Measures a learner at the scheduled iterations, and appends what it finds to ``metrics.jsonl``."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from bgd.inference import INFERENCES
from bgd.methods.common.types import Learner
from bgd.runs.calibration import Tests
from bgd.runs.config import RunConfig
from bgd.runs.evaluate import available_inferences, histogram, score, stds
from bgd.runs.metrics_file import MetricsFile
from bgd.runs.progress import ProgressReporter
from bgd.runs.schedule import Schedule, plan_measurements
from bgd.scenarios import Batch, Joint, Stream


class RunningMean:
    """The mean of the losses since the last point of the curve.

    >>> mean = RunningMean()
    >>> mean.add(1.0), mean.add(2.0), mean.take(), mean.count
    (None, None, 1.5, 0)
    """

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, value: float) -> None:
        """Count one value."""
        self.total += value
        self.count += 1

    def take(self) -> float:
        """The mean; counting starts again."""
        mean = self.total / self.count
        self.total, self.count = 0.0, 0
        return mean


class Measurements:
    """What the training loop needs of whatever measures a run.

    Attributes:
        schedule: when :meth:`measure` is due.
        losses: of the batches.
        test_first: called with each batch before it is learnt; None where batches are not tested.
    """

    schedule: Schedule
    losses: RunningMean
    metrics: MetricsFile
    test_first: Callable[[Tensor, Tensor], None] | None = None

    def measure(self, iteration: int) -> None:
        """Record what is due at this iteration."""
        raise NotImplementedError

    def record_warning(self, iteration: int, text: str) -> None:
        """A collapsed posterior is part of the result: a table must not show it as just a bad number."""
        # once is enough: the optimizer does not save that it has warned, so a resumed run warns again
        if not any(record["kind"] == "warning" for record in self.metrics.records):
            self.metrics.add("warning", iteration=iteration, text=text)

    def state_dict(self) -> dict[str, Any]:
        """What the metrics file does not hold."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""


class Measurer(Measurements):
    """Losses, accuracies and stds of one run.

    Args:
        config: of the run.
        stream: its stream.
        learner: its learner, which measuring never changes.
        metrics: where the records go.
        reporter: evaluations may take long.
    """

    def __init__(
        self, config: RunConfig, stream: Stream, learner: Learner, metrics: MetricsFile, reporter: ProgressReporter
    ) -> None:
        self.test, self.device = config.setup.test, config.device
        self.stream, self.learner, self.metrics, self.reporter = stream, learner, metrics, reporter
        self.schedule = plan_measurements(config.setup.test, stream.stages, len(stream))
        self.losses = RunningMean()

    def measure(self, iteration: int) -> None:
        """Record what is due at this iteration."""
        schedule, add = self.schedule, self.metrics.add
        rows = schedule.rows_at(iteration)
        if iteration in schedule.curve:
            add("loss", iteration=iteration, loss=self.losses.take())
        if schedule.evaluates(iteration):
            evaluation = self._evaluate(iteration)
            for row in rows or (None,):
                add("evaluation", iteration=iteration, stage=row, **evaluation)
            if self.test.train:
                add("fit", iteration=iteration, **self._fit())
        if schedule.records_stds(iteration) and (values := stds(self.learner)) is not None:
            add("stds", iteration=iteration, after=self._label(iteration, rows), **histogram(values))

    def _evaluate(self, iteration: int) -> dict[str, Any]:
        """All tasks, by MAP and the run's own inference; at the end by every inference method."""
        test, at_end = self.test, iteration == self.schedule.length
        inferences = available_inferences(self.learner, INFERENCES if at_end else (test.inference,))
        by_inference: dict[str, list[float]] = {inference: [] for inference in inferences}
        losses, tests = [], Tests() if at_end else None
        for task in range(len(self.stream.tasks)):
            self.reporter.report_throttled(iteration, "evaluating")
            batches = self.stream.test_batches(task)
            accuracy, loss = score(self.learner, batches, inferences, test.samples, self.device, tests)
            for inference in inferences:
                by_inference[inference].append(accuracy[inference])
            losses.append(loss)
        own = test.inference if test.inference in by_inference else "map"
        return {
            "seen": self._seen(iteration),
            "accuracy": by_inference[own],
            "loss": losses,
            "by_inference": by_inference,
            **({"calibration_error": tests.calibration_error} if tests and tests.count else {}),
        }

    def _fit(self) -> dict[str, Any]:
        """The first training images of all tasks, by the run's own inference."""
        inferences = available_inferences(self.learner, (self.test.inference,))
        scores = [
            score(self.learner, self._training_images(task), inferences, self.test.samples, self.device)
            for task in range(len(self.stream.tasks))
        ]
        return {"accuracy": [accuracy[inferences[-1]] for accuracy, _ in scores], "loss": [loss for _, loss in scores]}

    def _training_images(self, task: int) -> Iterator[Batch]:
        """With the task's number only where a test reveals it, and not augmented."""
        left = self.test.train
        revealed = task if self.stream.scenario.task_in_testing else None
        for x, y, _ in self.stream.train_batches(task, min(left, 2048)):
            yield Batch(x[:left], y[:left], revealed)
            left -= len(x)
            if left <= 0:
                return

    def _seen(self, iteration: int) -> int:
        """The number of tasks that have begun."""
        tasks = len(self.stream.tasks)
        if iteration == 0:
            return 0
        if isinstance(self.stream, Joint):
            return tasks
        return min(tasks, bisect_left(self.stream.stages, iteration) + 1)

    def _label(self, iteration: int, rows: list[int]) -> str:
        if not rows:
            return f"iteration {iteration:,}" if iteration else "start"
        names = self.stream.tasks.names
        return names[rows[-1]] if len(self.stream.stages) == len(names) else "all tasks"
