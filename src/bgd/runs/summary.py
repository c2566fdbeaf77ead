"""The result of a run: a pure function of what ``metrics.jsonl`` records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bgd.runs import metrics
from bgd.runs.config import RunConfig
from bgd.runs.prequential import summarise_prequential
from bgd.runs.result import CurvePoint, Evaluation, Fit, RunResult, StdHistogram


def summarise(
    config: RunConfig,
    records: Sequence[dict[str, Any]],
    *,
    task_names: Sequence[str],
    stages: Sequence[int],
    data_note: str = "",
    upper_bound: bool = False,
) -> RunResult:
    """The result, from the records of a whole run.

    Args:
        config: of the run.
        records: lines of ``metrics.jsonl``.
        task_names: of its tasks.
        stages: iterations at which the rows of R were measured.
        data_note: what a reader must know of the data.
        upper_bound: whether its method is a reference that never counts as best.

    >>> scores = {"seen": 1, "accuracy": [0.5], "loss": [0.7], "by_inference": {"map": [0.5]}}
    >>> records = [{"kind": "evaluation", "iteration": i, "stage": s, **scores} for i, s in ((0, None), (9, 0))]
    >>> summarise(RunConfig(method="sgd"), records, task_names=["a"], stages=[9]).R
    [[0.5]]
    """
    if config.setup.stream.kind == "prequential":
        return summarise_prequential(config, records, task_names=task_names, stages=stages).model_copy(
            update={"data_note": data_note, "upper_bound": upper_bound}
        )
    kinds: dict[str, list[dict[str, Any]]] = {"loss": [], "evaluation": [], "fit": [], "stds": [], "warning": []}
    for record in records:
        kinds[record["kind"]].append({key: value for key, value in record.items() if key != "kind"})
    evaluations = [Evaluation(**record) for record in kinds["evaluation"]]
    last = evaluations[-1]
    R = [evaluation.accuracy for evaluation in evaluations if evaluation.stage is not None]
    return RunResult(
        config=config,
        task_names=list(task_names),
        iterations=last.iteration,
        stages=list(stages),
        R=R,
        average_accuracy=metrics.average_accuracy(R),
        by_inference={method: math.fsum(each) / len(each) for method, each in last.by_inference.items()},
        metrics=_derive_metrics(config, R, evaluations),
        evaluations=evaluations,
        fits=[Fit(**record) for record in kinds["fit"]],
        curve=[CurvePoint(**record) for record in kinds["loss"]],
        stds=[StdHistogram(**record) for record in kinds["stds"]],
        warnings=[record["text"] for record in kinds["warning"]],
        data_note=data_note,
        upper_bound=upper_bound,
    )


def _derive_metrics(config: RunConfig, R: list[list[float]], evaluations: list[Evaluation]) -> dict[str, float]:
    """The metrics that are defined for this run: transfer needs a stage for each of several tasks."""
    derived = {}
    if len(R) == len(R[0]) > 1:
        derived["forgetting"] = metrics.forgetting(R)
        derived["backward_transfer"] = metrics.backward_transfer(R)
        derived["forward_transfer"] = metrics.forward_transfer(R, evaluations[0].accuracy)
    count = config.setup.test.evaluations
    length = evaluations[-1].iteration
    times = metrics.evaluation_schedule(length, min(count, length)) if count else [e.iteration for e in evaluations[1:]]
    by_time = {e.iteration: e for e in evaluations if e.iteration}
    chosen = [by_time[t] for t in dict.fromkeys(times)]
    derived["anytime_accuracy"] = metrics.anytime_accuracy([e.accuracy for e in chosen], [e.seen for e in chosen])
    return derived
