"""A comparison of runs: rows (methods) by columns (settings), each with its runs and the paper's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bgd.experiments.declaration import Experiment, Reported
from bgd.report.statistics import Difference, Summary, Verdict, difference, summarise, verdict
from bgd.report.summary.scale import Scale
from bgd.runs.config import RunConfig
from bgd.runs.result import RunResult


@dataclass(frozen=True)
class Unfinished:
    """A planned run without a result.

    Attributes:
        config: of the run.
        state: "failed", or "not finished".
        reason: the last line of the error, or where to read it.
    """

    config: RunConfig
    state: str
    reason: str = ""


@dataclass(frozen=True)
class Entry:
    """One method in one column: all its runs.

    Attributes:
        row: label of the method.
        column: label of the setting.
        runs: results in order of their seeds.
        unfinished: planned, but without a result.
        ours: average accuracy at the end, in percent, over the runs.
        paper: the same as the paper prints it, if it does.
        reported: all that the paper reports of it, if anything; of a smoke test the times alone.
        seconds: of computing, for a run; in processor time where any of the runs has measured it.
        scale: how much of the paper's training they are; None where nothing is declared as the paper's.
        deviations: in what they are not the paper's runs; empty where they are.
        best: whether no other method of the column has a higher mean on the seeds that both have (upper bounds do
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
    scale: Scale | None = None
    deviations: tuple[str, ...] = ()
    best: bool = False

    @property
    def comparable(self) -> bool:
        """Whether the runs are the paper's: its scale and settings, on the published data."""
        return not self.deviations and self.scale in (Scale.FULL, Scale.FEWER_SEEDS)

    @property
    def verdict(self) -> Verdict:
        """Whether our mean agrees with the paper's; unknown for runs of another scale."""
        return verdict(self.ours, self.paper) if self.comparable else Verdict.UNKNOWN

    @property
    def gap(self) -> Difference | None:
        """Ours minus the paper's; None for runs that are not the paper's."""
        return difference(self.ours, self.paper) if self.ours and self.paper and self.comparable else None

    @property
    def tasks(self) -> dict[str, Summary]:
        """Accuracy on each task at the end, in percent, over the runs; empty where these had different tasks."""
        names = [tuple(run.task_names) for run in self.runs]
        if len(set(names)) != 1:
            return {}
        ends = [final_accuracies(run) for run in self.runs]
        summaries = ((name, summarise(100 * end[name] for end in ends)) for name in ends[0])
        return {name: summary for name, summary in summaries if summary}

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
    def upper_bound(self) -> bool:
        """Whether the method is a reference that never counts as best, such as training on all tasks at once."""
        return any(run.upper_bound for run in self.runs)

    @property
    def failed(self) -> int:
        """How many runs failed."""
        return sum(one.state == "failed" for one in self.unfinished)

    @property
    def warned(self) -> int:
        """How many runs have warnings, such as that the posterior has collapsed."""
        return sum(bool(run.warnings) for run in self.runs)

    @property
    def planned(self) -> int:
        """How many runs there should be."""
        return len(self.runs) + len(self.unfinished)


@dataclass(frozen=True)
class Comparison:
    """Methods (rows) in settings (columns), with what the paper reports of them.

    Attributes:
        name: of the experiment.
        preset: its scale.
        overrides: the user's own values (``key=value``), which override the declaration.
        experiment: its declaration, if there is one.
        rows: labels of the methods, in the declared order.
        columns: labels of the settings, likewise.
        entries: by row and column; absent where no run was planned.
        remarks: of people on the results, in Markdown.
        outdated: how many runs of its folder are excluded, since the declaration has changed.
    """

    name: str
    preset: str
    overrides: tuple[str, ...]
    experiment: Experiment | None
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    entries: Mapping[tuple[str, str], Entry] = field(repr=False)
    remarks: str = ""
    outdated: int = 0

    @property
    def title(self) -> str:
        """Of the experiment; its name where there is no declaration."""
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
        """Of all entries whose agreement is known; none where many are candidates for one value of the paper."""
        if self.experiment and self.experiment.candidates:
            return []
        return [e.verdict for e in self.entries.values() if e.verdict is not Verdict.UNKNOWN]

    @property
    def has_paper(self) -> bool:
        """Whether the paper reports any of these."""
        return any(entry.paper for entry in self.entries.values())

    @property
    def upper_bounds(self) -> list[str]:
        """Rows that are references and never count as best."""
        return list(dict.fromkeys(entry.row for entry in self.entries.values() if entry.upper_bound))

    @property
    def highlighted(self) -> str | None:
        """The row that figures emphasise: the declaration's own choice, or its first row; None without one."""
        if self.experiment is None:
            return None
        row = self.experiment.highlight or next(iter(self.experiment.rows))
        return row if row in self.rows and row not in self.upper_bounds else None

    def column(self, name: str) -> list[Entry]:
        """The entries of one column, in the order of the rows."""
        return [self.entries[row, name] for row in self.rows if (row, name) in self.entries]


def final_accuracies(run: RunResult) -> dict[str, float]:
    """Accuracy on each task after the last stage, by the task's name."""
    return dict(zip(_number_repeated(run.task_names), run.R[-1], strict=True))


def _number_repeated(names: Sequence[str]) -> list[str]:
    """Names of tasks, made distinct where one comes back: mnist, svhn, mnist (2)."""
    return [f"{name} ({times})" if (times := names[: j + 1].count(name)) > 1 else name for j, name in enumerate(names)]
