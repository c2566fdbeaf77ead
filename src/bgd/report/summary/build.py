"""From results of runs to a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bgd.experiments import EXPERIMENTS
from bgd.experiments.declaration import Experiment
from bgd.report.statistics import summarise
from bgd.report.summary.best import best_of
from bgd.report.summary.paper import PAPER_PRESET, differences, reference_run, summary_of
from bgd.report.summary.rows import column_of, order_labels, row_of
from bgd.report.summary.scale import Scale, scale_of
from bgd.report.summary.types import Comparison, Entry, Unfinished
from bgd.runs.config import RunConfig
from bgd.runs.result import RunResult


def compare(
    results: Iterable[RunResult],
    experiment: Experiment | None = None,
    unfinished: Iterable[Unfinished] = (),
    *,
    preset: str | None = None,
    overrides: Sequence[str] = (),
) -> Comparison:
    """Compare the results of one experiment at one preset.

    Args:
        results: of its runs.
        experiment: its declaration: the order of rows and columns, and what the paper reports.
        unfinished: planned runs without a result.
        preset: its scale; by default that of the runs.
        overrides: the user's own values (``key=value``), which override the declaration.

    >>> from bgd.runs.config import RunConfig
    >>> config = RunConfig(experiment="mine", row="BGD", column="accuracy", method="bgd")
    >>> compare([], unfinished=[Unfinished(config, "failed")]).entries["BGD", "accuracy"].planned
    1
    """
    done, missing = list(results), list(unfinished)
    configs = [run.config for run in done] + [one.config for one in missing]
    rows = order_labels([row_of(c) for c in configs], experiment.rows if experiment else ())
    columns = order_labels([column_of(c) for c in configs], experiment.columns if experiment else ())
    presets = list(dict.fromkeys(c.preset for c in configs))
    entries: dict[tuple[str, str], Entry] = {}
    for row in rows:
        for column in columns:
            runs = [r for r in done if (row_of(r.config), column_of(r.config)) == (row, column)]
            without = [u for u in missing if (row_of(u.config), column_of(u.config)) == (row, column)]
            if runs or without:
                entries[row, column] = _make_entry(row, column, runs, without, experiment)
    _mark_best(entries, columns)
    return Comparison(
        name=experiment.name if experiment else configs[0].experiment if configs else "",
        preset=preset if preset is not None else ", ".join(p for p in presets if p),
        overrides=tuple(overrides),
        experiment=experiment,
        rows=rows,
        columns=columns,
        entries=entries,
    )


def _make_entry(
    row: str,
    column: str,
    runs: Sequence[RunResult],
    unfinished: Sequence[Unfinished],
    experiment: Experiment | None,
) -> Entry:
    runs = sorted(runs, key=lambda run: run.config.seed)
    machines = [run.machine for run in runs if run.machine]
    seconds = [m.work_seconds for m in machines if m.work_seconds] or [m.cost for m in machines]
    reported = experiment.paper.get(row, {}).get(column) if experiment else None
    configs = [run.config for run in runs] + [one.config for one in unfinished]
    reference = reference_run(configs[0], experiment)
    seeds = reported.runs if reported and reported.runs else _declared_seeds(experiment)
    scale = scale_of(configs, reference, seeds) if reference else None
    if scale is Scale.SMOKE and reported is not None:  # never beside the paper's accuracies
        reported = reported.model_copy(update={"mean": None, "spread": None, "tasks": ()})
    return Entry(
        row=row,
        column=column,
        runs=tuple(runs),
        unfinished=tuple(sorted(unfinished, key=lambda one: one.config.seed)),
        ours=summarise(100 * run.average_accuracy for run in runs),
        paper=summary_of(reported),
        reported=reported,
        seconds=sum(seconds) / len(seconds) if seconds else None,
        scale=scale,
        deviations=_deviations(runs, unfinished, reference),
    )


def _declared_seeds(experiment: Experiment | None) -> int | None:
    """How many there are at the paper's scale, where the paper does not say."""
    declared = EXPERIMENTS.get(experiment.name, experiment) if experiment else None
    preset = declared.presets.get(PAPER_PRESET) if declared else None
    return len(preset.seeds if preset and preset.seeds else declared.seeds) if declared else None


def _deviations(
    runs: Sequence[RunResult], unfinished: Sequence[Unfinished], reference: RunConfig | None
) -> tuple[str, ...]:
    """In what the runs are not the paper's: each difference once."""
    if reference is None:
        return ("no run of the paper",)
    found = [one for run in runs for one in _deviations_of(run.config, reference, run)]
    found += [one for missing in unfinished for one in _deviations_of(missing.config, reference, None)]
    return tuple(dict.fromkeys(found))


def _deviations_of(config: RunConfig, reference: RunConfig, run: RunResult | None) -> list[str]:
    known = run.machine.settings if run and run.machine else {}
    return differences(config, reference, known) + ([run.data_note] if run and run.data_note else [])


def _mark_best(entries: dict[tuple[str, str], Entry], columns: Sequence[str]) -> None:
    for column in columns:
        in_column = [entry for entry in entries.values() if entry.column == column]
        for entry in best_of(in_column, lambda run: run.average_accuracy):
            entries[entry.row, column] = replace(entry, best=True)
