"""The results of a comparison's runs, set side by side: what every table, figure and page is made from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bgd.experiments import EXPERIMENTS
from bgd.experiments.declaration import Experiment, Reported
from bgd.experiments.layers import resolve
from bgd.report.statistics import Difference, Summary, Verdict, difference, summarise, verdict
from bgd.runs.build import names_of
from bgd.runs.config import RunConfig, unused
from bgd.runs.result import RunResult

PAPER = "paper"
"""The preset of the paper's own scale."""

WAYS = ("noise", "batched", "chunk_size", "compile")
"""Settings of BGD that decide how a step is computed, not what."""


@dataclass(frozen=True)
class Unfinished:
    """A run that was wanted but has no result.

    Attributes:
        config: what was to be run.
        state: "failed", or "not finished".
        why: the last line of the error, or where to read it.
    """

    config: RunConfig
    state: str
    why: str = ""


@dataclass(frozen=True)
class Entry:
    """One method in one column: all its runs.

    Attributes:
        row: label of the method.
        column: label of the setting.
        runs: results in order of their seeds.
        unfinished: wanted, but without a result.
        ours: average accuracy at the end, in percent, over the runs.
        paper: the same as the paper prints it, if it does.
        reported: all that the paper says of it, if anything; of single tasks only where ours are the same.
        seconds: of computing, for a run; in processor time where any of the runs has measured it.
        comparable: whether the runs are the paper's: its scale and settings, on the published data.
        best: whether no other method of the column has a higher mean on the seeds that both have (the upper bound does
            not count).
    """

    row: str
    column: str
    runs: tuple[RunResult, ...]
    unfinished: tuple[Unfinished, ...] = ()
    ours: Summary | None = None
    paper: Summary | None = None
    reported: Reported | None = None
    seconds: float | None = None
    comparable: bool = True
    best: bool = False

    @property
    def verdict(self) -> Verdict:
        """Whether our mean agrees with the paper's; cannot be said of runs of another scale."""
        return verdict(self.ours, self.paper) if self.comparable else Verdict.UNKNOWN

    @property
    def gap(self) -> Difference | None:
        """Ours minus the paper's."""
        return difference(self.ours, self.paper) if self.ours and self.paper else None

    @property
    def tasks(self) -> dict[str, Summary]:
        """Accuracy on each task at the end, in percent, over the runs; empty where these had different tasks."""
        names = [tuple(run.task_names) for run in self.runs]
        if len(set(names)) != 1:
            return {}
        ends = [at_end(run) for run in self.runs]
        found = ((name, summarise(100 * end[name] for end in ends)) for name in ends[0])
        return {name: summary for name, summary in found if summary}

    @property
    def epoch_seconds(self) -> float | None:
        """Of training, for an epoch of one task: the mean over the runs; None where a stream has no epochs."""
        times = [
            run.machine.train_seconds / (run.config.setup.stream.epochs * len(run.task_names))
            for run in self.runs
            if run.machine and run.config.setup.stream.kind == "discrete"
        ]
        return sum(times) / len(times) if times else None

    @property
    def step_seconds(self) -> float | None:
        """Of training, for one iteration: the mean over the runs."""
        times = [run.machine.train_seconds / run.iterations for run in self.runs if run.machine and run.iterations]
        return sum(times) / len(times) if times else None

    @property
    def warned(self) -> int:
        """How many runs warn of something, such as a posterior that has collapsed."""
        return sum(bool(run.warnings) for run in self.runs)

    @property
    def wanted(self) -> int:
        """How many runs there should be."""
        return len(self.runs) + len(self.unfinished)


@dataclass(frozen=True)
class Comparison:
    """Methods (rows) in settings (columns), with what the paper says of them.

    Attributes:
        name: of the experiment.
        preset: its scale.
        changes: the user's own values over the declaration.
        experiment: its declaration, if there is one.
        rows: labels of the methods, in the declared order.
        columns: labels of the settings, likewise.
        entries: by row and column; what was never to be run is not there.
        remarks: what people make of it, in Markdown.
        outdated: how many runs of its folder are left out, since the declaration is no longer theirs.
    """

    name: str
    preset: str
    changes: tuple[str, ...]
    experiment: Experiment | None
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    entries: Mapping[tuple[str, str], Entry] = field(repr=False)
    remarks: str = ""
    outdated: int = 0

    @property
    def title(self) -> str:
        """For people."""
        return self.experiment.title if self.experiment else self.name

    @property
    def runs(self) -> list[RunResult]:
        """All results."""
        return [run for entry in self.entries.values() for run in entry.runs]

    @property
    def unfinished(self) -> list[Unfinished]:
        """All runs without a result."""
        return [one for entry in self.entries.values() for one in entry.unfinished]

    @property
    def seconds(self) -> float:
        """Of computing, over all runs."""
        return sum(run.machine.cost for run in self.runs if run.machine)

    @property
    def verdicts(self) -> list[Verdict]:
        """Of all entries about which something can be said; none where many stand for one value of the paper."""
        if self.experiment and self.experiment.candidates:
            return []
        return [e.verdict for e in self.entries.values() if e.verdict is not Verdict.UNKNOWN]

    @property
    def has_paper(self) -> bool:
        """Whether the paper reports any of these."""
        return any(entry.paper for entry in self.entries.values())

    def column(self, name: str) -> list[Entry]:
        """The entries of one column, in the order of the rows."""
        return [self.entries[row, name] for row in self.rows if (row, name) in self.entries]


def compare(
    results: Iterable[RunResult],
    experiment: Experiment | None = None,
    unfinished: Iterable[Unfinished] = (),
    *,
    preset: str | None = None,
    changes: Sequence[str] = (),
) -> Comparison:
    """Set the results of one experiment at one preset side by side.

    Args:
        results: of its runs.
        experiment: its declaration: the order of rows and columns, and what the paper reports.
        unfinished: runs that were wanted but have no result.
        preset: its scale; by default what the runs say.
        changes: the user's own values (``key=value``) over the declaration.

    >>> from bgd.runs.config import RunConfig
    >>> config = RunConfig(experiment="mine", row="BGD", column="accuracy", method="bgd")
    >>> compare([], unfinished=[Unfinished(config, "failed")]).entries["BGD", "accuracy"].wanted
    1
    """
    done, missing = list(results), list(unfinished)
    configs = [run.config for run in done] + [one.config for one in missing]
    rows = _order([_row(c) for c in configs], experiment.rows if experiment else ())
    columns = _order([_column(c) for c in configs], experiment.columns if experiment else ())
    presets = list(dict.fromkeys(c.preset for c in configs))
    entries: dict[tuple[str, str], Entry] = {}
    for row in rows:
        for column in columns:
            here = [r for r in done if (_row(r.config), _column(r.config)) == (row, column)]
            gone = [u for u in missing if (_row(u.config), _column(u.config)) == (row, column)]
            if here or gone:
                entries[row, column] = _entry(row, column, here, gone, experiment)
    _mark_best(entries, columns)
    return Comparison(
        name=experiment.name if experiment else configs[0].experiment if configs else "",
        preset=preset if preset is not None else ", ".join(p for p in presets if p),
        changes=tuple(changes),
        experiment=experiment,
        rows=rows,
        columns=columns,
        entries=entries,
    )


def settings(comparison: Comparison) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What all runs share, and what is each method's own, by its label: with the defaults that the method had."""
    configs: dict[str, Mapping[str, Any]] = {}
    for entry in comparison.entries.values():
        config = entry.runs[0].config if entry.runs else entry.unfinished[0].config
        label = entry.row + (f", {entry.column}" if len(comparison.columns) > 1 else "")
        machine = entry.runs[0].machine if entry.runs else None
        setup = flatten(config.setup.model_dump(mode="json"))
        idle = unused(config.setup)
        configs[label] = {"method": config.method, **config.settings, **(machine.settings if machine else {})} | {
            key: value for key, value in setup.items() if key not in idle
        }
    return same_and_different(configs)


def same_and_different(
    configs: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What all configurations share, and what is left of each.

    >>> same_and_different({"a": {"lr": 1, "batch": 8}, "b": {"lr": 2, "batch": 8}})
    ({'batch': 8}, {'a': {'lr': 1}, 'b': {'lr': 2}})
    """
    flat = {name: flatten(config) for name, config in configs.items()}
    if not flat:
        return {}, {}
    first = next(iter(flat.values()))
    same = {k: v for k, v in first.items() if all(k in other and other[k] == v for other in flat.values())}
    return same, {name: {k: v for k, v in f.items() if k not in same} for name, f in flat.items()}


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested configuration as dotted keys.

    >>> flatten({"data": {"name": "mnist"}, "seed": 1})
    {'data.name': 'mnist', 'seed': 1}
    """
    flat: dict[str, Any] = {}
    for key, item in config.items():
        flat |= flatten(item, f"{prefix}{key}.") if isinstance(item, Mapping) else {prefix + key: item}
    return flat


def _entry(
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
    return Entry(
        row=row,
        column=column,
        runs=tuple(runs),
        unfinished=tuple(sorted(unfinished, key=lambda one: one.config.seed)),
        ours=summarise(100 * run.average_accuracy for run in runs),
        paper=_summary(reported) if reported else None,
        reported=_of_our_tasks(reported, configs, experiment),
        seconds=sum(seconds) / len(seconds) if seconds else None,
        comparable=all(_at_paper_scale(config, experiment) for config in configs)
        and not any(run.data_note for run in runs),
    )


def _of_our_tasks(
    reported: Reported | None, configs: Sequence[RunConfig], experiment: Experiment | None
) -> Reported | None:
    """Without the paper's values of single tasks where ours are made from other data: a stand-in is no MNIST."""
    papers = [_papers(config, experiment) for config in configs]
    same = all(p and names_of(c.setup.data) == names_of(p.setup.data) for c, p in zip(configs, papers, strict=True))
    return reported if reported is None or same else reported.model_copy(update={"tasks": ()})


def _papers(config: RunConfig, experiment: Experiment | None) -> RunConfig | None:
    """The run that is declared as the paper's for the same method, setting and seed."""
    # a built-in declaration is taken from the package: that of a folder may hold the user's own changes
    reference = EXPERIMENTS.get(config.experiment, experiment)
    row, column = _row(config), _column(config)
    if reference is None or row not in reference.rows or column not in reference.columns:
        return None
    preset = PAPER if PAPER in reference.presets else next(iter(reference.presets))
    return resolve(reference, preset, row, column, config.seed)


def _at_paper_scale(config: RunConfig, experiment: Experiment | None) -> bool:
    """Whether a run is what is declared as the paper's.

    How its steps were computed does not matter, nor in which precision their products, nor how often it was looked at.
    """
    declared = _papers(config, experiment)

    def essence(one: RunConfig) -> object:
        setup = one.setup.model_dump()
        for looks in ("evaluations", "curve", "train", "stds"):
            setup["test"].pop(looks)
        setup["net"].pop("precision")
        return one.method, {key: value for key, value in one.settings.items() if key not in WAYS}, setup

    return declared is not None and essence(config) == essence(declared)


def _mark_best(entries: dict[tuple[str, str], Entry], columns: Sequence[str]) -> None:
    for column in columns:
        here = [entry for entry in entries.values() if entry.column == column]
        for one in best_of(here, lambda run: run.average_accuracy):
            entries[one.row, column] = replace(one, best=True)


def at_end(run: RunResult) -> dict[str, float]:
    """Accuracy on each task after the last stage, by the task's name."""
    return dict(zip(_apart(run.task_names), run.R[-1], strict=True))


def best_of(entries: Iterable[Entry], value: Callable[[RunResult], float]) -> list[Entry]:
    """The entries that no other beats in the value of their runs; the upper bound does not count, nor one alone."""
    rivals = [e for e in entries if e.runs and e.runs[0].config.method != "offline"]
    return [
        one
        for one in rivals
        if len(rivals) > 1 and all(_no_worse(one, other, value) for other in rivals if other is not one)
    ]


def _no_worse(one: Entry, other: Entry, value: Callable[[RunResult], float]) -> bool:
    """On the seeds that both have, since a seed can be easier than another; without any, nothing can be said."""
    ours, theirs = ({run.config.seed: value(run) for run in entry.runs} for entry in (one, other))
    common = [seed for seed in ours if seed in theirs]
    mean, rival = (sum(own[seed] for seed in common) for own in (ours, theirs))
    return bool(common) and math.isfinite(mean) and not mean < rival


def _summary(reported: Reported) -> Summary | None:
    """The paper's value, if it gives one; where it does not say how many runs it took, one."""
    if reported.mean is None:
        return None
    return Summary(reported.mean, reported.spread, reported.runs or 1)


def _apart(names: Sequence[str]) -> list[str]:
    """Names of tasks, told apart where one comes back: mnist, svhn, mnist (2)."""
    return [f"{name} ({times})" if (times := names[: j + 1].count(name)) > 1 else name for j, name in enumerate(names)]


def _row(config: RunConfig) -> str:
    return config.row or config.method


def _column(config: RunConfig) -> str:
    return config.column or "accuracy"


def _order(found: Sequence[str], declared: Iterable[str]) -> tuple[str, ...]:
    """Declared names that were found first, then the others in alphabetical order: the same on every machine."""
    there = set(found)
    known = [name for name in declared if name in there]
    return (*known, *sorted(there.difference(known)))
