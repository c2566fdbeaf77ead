"""Predict, then learn: every batch is a test before it is learnt, and what is measured is the sum of these tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bgd.methods.common.types import Learner
from bgd.runs.calibration import Tests
from bgd.runs.config import RunConfig
from bgd.runs.evaluate import histogram, stds
from bgd.runs.measure import Measurements, RunningMean
from bgd.runs.metrics_file import MetricsFile
from bgd.runs.result import Alarm, CurvePoint, Evaluation, Prequential, RunResult, StdHistogram
from bgd.runs.schedule import plan_measurements
from bgd.scenarios import Stream
from bgd.streams.drift import DriftAlarm

WINDOWS = 50


class PrequentialMeasurer(Measurements):
    """Tests every batch before it is learnt; the arguments are those of :class:`bgd.runs.measure.Measurer`."""

    def __init__(self, config: RunConfig, stream: Stream, learner: Learner, metrics: MetricsFile) -> None:
        test = config.setup.test
        windows = test.model_copy(update={"evaluations": test.evaluations or WINDOWS})
        self.learner, self.metrics = learner, metrics
        self.schedule = plan_measurements(windows, stream.stages, len(stream))
        self.losses = RunningMean()
        self.total, self.window = Tests(), Tests()
        self.alarm = DriftAlarm(test.alarm_every)

    @torch.no_grad()
    def test_first(self, x: Tensor, y: Tensor) -> None:
        """Predict a batch that the learner has not seen."""
        p, labels = self.learner.predict(x).double().softmax(1).cpu(), y.cpu()
        surprise = self.total.add(p, labels)
        self.window.add(p, labels)
        for event in self.alarm.update_many(surprise.numpy()):
            self.metrics.add("alarm", at=event.at, since=event.since, evidence=event.evidence)

    def measure(self, iteration: int) -> None:
        """Record what is due at this iteration: the window since the last record, and at the end the whole."""
        schedule, add = self.schedule, self.metrics.add
        if iteration in schedule.curve:
            add("loss", iteration=iteration, loss=self.losses.take())
        if self.window.count and (iteration in schedule.evaluations or iteration == schedule.length):
            add("window", iteration=iteration, accuracy=self.window.accuracy, loss=self.window.log_loss)
            self.window = Tests()
        if schedule.records_stds(iteration) and (values := stds(self.learner)) is not None:
            after = f"iteration {iteration:,}" if iteration else "start"
            add("stds", iteration=iteration, after=after, **histogram(values))
        if iteration == schedule.length:
            whole = self.total
            add(
                "prequential",
                examples=whole.count,
                accuracy=whole.accuracy,
                log_loss=whole.log_loss,
                calibration_error=whole.calibration_error,
                bins=[list(bin) for bin in zip(whole.counts, whole.confidence, whole.right, strict=True)],
            )

    def state_dict(self) -> dict[str, Any]:
        """The sums and the alarm."""
        parts = {"total": self.total, "window": self.window, "alarm": self.alarm}
        return {name: part.state_dict() for name, part in parts.items()}  # type: ignore[attr-defined]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.total.load_state_dict(state["total"])
        self.window.load_state_dict(state["window"])
        self.alarm.load_state_dict(state["alarm"])


def summarise_prequential(
    config: RunConfig, records: Sequence[dict[str, Any]], *, task_names: Sequence[str], stages: Sequence[int]
) -> RunResult:
    """The result of a prequential run: R has one row, the accuracy over all examples; evaluations are windows."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        kinds.setdefault(record["kind"], []).append({key: value for key, value in record.items() if key != "kind"})
    whole = Prequential(**kinds["prequential"][0], alarms=[Alarm(**record) for record in kinds.get("alarm", [])])
    return RunResult(
        config=config,
        task_names=list(task_names),
        iterations=stages[-1],
        stages=list(stages),
        R=[[whole.accuracy]],
        average_accuracy=whole.accuracy,
        by_inference={"map": whole.accuracy},
        metrics={},
        evaluations=[_window(record) for record in kinds["window"]],
        curve=[CurvePoint(**record) for record in kinds.get("loss", [])],
        stds=[StdHistogram(**record) for record in kinds.get("stds", [])],
        warnings=[record["text"] for record in kinds.get("warning", [])],
        prequential=whole,
    )


def _window(record: dict[str, Any]) -> Evaluation:
    accuracy = [record["accuracy"]]
    return Evaluation(
        iteration=record["iteration"],
        seen=1,
        accuracy=accuracy,
        loss=[record["loss"]],
        by_inference={"map": accuracy},
    )
