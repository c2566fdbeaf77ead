"""Which figures a comparison has, with captions and what a reader who cannot see them should hear."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bgd.report import formatting
from bgd.report.figures import drawing as figures
from bgd.report.summary import Comparison, Entry
from bgd.runs.config import RunConfig
from bgd.runs.metrics import average_accuracy_seen
from bgd.runs.result import RunResult, StdHistogram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bgd.scenarios.streams.base import Stream


SPIKE = 3.0
"""In units of the largest loss at the start: where the axis of training losses ends, if one goes beyond it."""


@dataclass(frozen=True)
class Plot:
    """A figure of the report.

    Attributes:
        name: for files, unique within the comparison.
        title: of the figure.
        caption: what is drawn, in a sentence.
        alt: the content in words, for those who cannot see it.
        figure: matplotlib's.
        small: one of many of its kind, shown side by side.
    """

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure
    small: bool = False


def plots(comparison: Comparison) -> list[Plot]:
    """All figures that the results allow, those of the paper's kind first.

    The declaration's ``figures`` say which are drawn beside the overview; without a declaration all that can be.
    """
    experiment = comparison.experiment
    wanted = set(experiment.figures) if experiment and experiment.figures else set(_KINDS)
    found = [*_results(comparison)]
    for kind, draw in _KINDS.items():
        if kind in wanted:
            found += draw(comparison)
    return found


def _results(comparison: Comparison) -> Iterator[Plot]:
    """Ours beside the paper's, for each column; and against the columns, where these are numbers."""
    numbers = [re.fullmatch(r"(\D*)(\d+(?:\.\d+)?)(\D*)", column) for column in comparison.columns]
    if len(numbers) > 1 and all(numbers) and len({(m[1], m[3]) for m in numbers if m}) == 1:
        yield from _against_columns(comparison, [float(m[2]) for m in numbers if m])
    for column in comparison.columns:
        entries = [e for e in comparison.column(column) if e.ours or e.paper]
        paper = any(e.paper for e in entries)
        # without the paper's values a few rows are read as well from the table; many are a search
        if len(entries) < (2 if paper else 7):
            continue
        title = "Accuracy at the end" + _of(comparison, column)
        yield Plot(
            f"results{_slug(comparison, column)}",
            title,
            "Average accuracy over all tasks at the end: our means, with whiskers of one standard deviation over seeds."
            + " Grey bands are the paper's mean and spread." * paper
            + _seeds(entries),
            _list(
                (e.row, formatting.value(e.ours) + (f", paper {formatting.value(e.paper)}" if e.paper else ""))
                for e in entries
            ),
            figures.forest(
                [(_label(comparison, e.row), e.ours, e.paper) for e in entries], title=title, among=_labels(comparison)
            ),
        )


def _against_columns(comparison: Comparison, x: list[float]) -> Iterator[Plot]:
    curves: dict[str, figures.Series] = {}
    for row in comparison.rows:
        entries = [comparison.entries.get((row, column)) for column in comparison.columns]
        ordered = sorted(zip(x, entries, strict=True), key=lambda pair: pair[0])
        known = [(at, e.ours) for at, e in ordered if e and e.ours and all(_sets(run.config, at) for run in e.runs)]
        if len(known) > 1:
            curves[_label(comparison, row)] = figures.Series(
                np.array([at for at, _ in known], dtype=np.float64),
                np.array([ours.mean for _, ours in known]),
                np.array([ours.spread or 0.0 for _, ours in known]),
            )
    if len(curves) < 2:  # nothing to compare
        return
    what = re.sub(r"[\d.]+", "", comparison.columns[0]).strip(" =") or "setting"
    far, whole = max(x) >= 100 * min(x) > 0, all(at.is_integer() for at in x)
    title = "Average accuracy over all tasks"
    yield Plot(
        "by-setting",
        title,
        f"Average accuracy over all tasks at the end against {what}; bands are one standard deviation over seeds."
        + _seeds(e for e in comparison.entries.values() if _label(comparison, e.row) in curves),
        _ends(curves),
        figures.lines(curves, among=_labels(comparison), title=title, xlabel=what, whole_x=whole, log_x=far),
    )


def _sets(config: RunConfig, number: float) -> bool:
    """Whether some setting of the run is the number its column is named after: none may be in a shortened one."""
    return number in map(float, re.findall(r"\d+(?:\.\d+)?(?:e[-+]\d+)?", f"{config.settings} {config.setup}"))


def _by_task(comparison: Comparison) -> Iterator[Plot]:
    for column in comparison.columns:
        curves = {}
        for entry in comparison.column(column):
            runs = [run for run in entry.runs if len(run.R) == len(run.task_names) > 1]
            if runs and _same(len(run.R) for run in runs):
                seen = [100 * average_accuracy_seen(run.R) for run in runs]
                curves[_label(comparison, entry.row)] = figures.series(np.arange(1, len(seen[0]) + 1), seen)
        if curves:
            title = "Average accuracy on the tasks so far" + _of(comparison, column)
            yield Plot(
                f"accuracy-by-task{_slug(comparison, column)}",
                title,
                "Test accuracy averaged over the tasks seen so far, against their number; "
                "bands are one standard deviation over seeds."
                + _seeds(e for e in comparison.column(column) if _label(comparison, e.row) in curves),
                _ends(curves),
                figures.lines(curves, among=_labels(comparison), title=title, xlabel="number of tasks", whole_x=True),
            )


def _each_task(comparison: Comparison) -> Iterator[Plot]:
    for column in comparison.columns:
        entries = [entry for entry in comparison.column(column) if len(entry.tasks) > 1]
        entries = [entry for entry in entries if list(entry.tasks) == list(entries[0].tasks)]
        if not entries:
            continue
        paper = any(e.reported and e.reported.tasks for e in entries)
        title = "Accuracy on each task at the end" + _of(comparison, column)
        yield Plot(
            f"each-task{_slug(comparison, column)}",
            title,
            "Test accuracy on each task, in the order learnt, when all have been: earlier tasks are to the left."
            + " Whiskers are one standard deviation over seeds." * (len(entries[0].runs) > 1)
            + " Lines across the bars are the paper's values." * paper
            + _seeds(entries),
            _list((e.row, ", ".join(f"{name} {end.mean:.0f} %" for name, end in e.tasks.items())) for e in entries),
            figures.task_bars(
                [
                    (_label(comparison, e.row), list(e.tasks.values()), e.reported.tasks if e.reported else ())
                    for e in entries
                ],
                list(entries[0].tasks),
                title=title,
                among=_labels(comparison),
            ),
        )


def _learning_curves(comparison: Comparison) -> Iterator[Plot]:
    for column in comparison.columns:
        accuracy: dict[str, figures.Series] = {}
        both: dict[str, figures.Series] = {}
        loss: dict[str, figures.Series] = {}
        seeds = _seeds(comparison.column(column))
        for entry in comparison.column(column):
            label, runs = _label(comparison, entry.row), entry.runs
            fitted = any(run.fits for run in runs)
            test, train = (f"{label}, test", f"{label}, training") if fitted else (label, "")
            accuracy |= _curve(test, [[(e.iteration, _percent(e.accuracy)) for e in run.evaluations] for run in runs])
            loss |= _curve(label, [[(p.iteration, p.loss) for p in run.curve] for run in runs])
            if fitted:
                accuracy |= _curve(train, [[(f.iteration, _percent(f.accuracy)) for f in run.fits] for run in runs])
                both |= _curve(test, [[(e.iteration, _mean(e.loss)) for e in run.evaluations] for run in runs])
                both |= _curve(train, [[(f.iteration, _mean(f.loss)) for f in run.fits] for run in runs])
        if accuracy:
            title = ("Accuracy over time" if both else "Test accuracy over time") + _of(comparison, column)
            yield Plot(
                f"learning-curves{_slug(comparison, column)}",
                title,
                "Test accuracy averaged over all tasks, also those still to come, against the number of batches."
                + " Beside it the accuracy on training images." * bool(both)
                + seeds,
                _ends(accuracy),
                figures.lines(accuracy, among=_labels(comparison), title=title, xlabel="iteration", whole_x=True),
            )
        if both:
            title = "Loss over time" + _of(comparison, column)
            yield Plot(
                f"learning-curves-loss{_slug(comparison, column)}",
                title,
                "Mean cross-entropy of the mean network on test and training images." + seeds,
                _ends(both),
                figures.lines(
                    both, among=_labels(comparison), title=title, xlabel="iteration", ylabel="loss", whole_x=True
                ),
            )
        if loss:
            title = "Training loss over time" + _of(comparison, column)
            absent = [label for label, curve in loss.items() if not np.isfinite(curve.mean).any()]
            high = SPIKE * max((c.mean[0] for c in loss.values() if np.isfinite(c.mean[0])), default=math.inf)
            beyond = [label for label, curve in loss.items() if (curve.mean > high).any()]
            yield Plot(
                f"training-loss{_slug(comparison, column)}",
                title,
                "Mean cross-entropy of the training batches since the point before, before each update."
                + (f" Nowhere finite, and not drawn: {'; '.join(absent)}." if absent else "")
                + (f" Beyond the axis at times: {'; '.join(beyond)}." if beyond else "")
                + seeds,
                _ends(loss),
                figures.lines(
                    loss,
                    among=_labels(comparison),
                    title=title,
                    xlabel="iteration",
                    ylabel="training loss",
                    whole_x=True,
                    top=high if beyond else None,
                ),
            )


def _percent(accuracies: Sequence[float]) -> float:
    return 100 * _mean(accuracies)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _curve(label: str, runs: list[list[tuple[int, float]]]) -> dict[str, figures.Series]:
    """Over the runs that were measured at the same iterations as the first."""
    at = [[x for x, _ in points] for points in runs]
    same = [points for points, xs in zip(runs, at, strict=True) if xs == at[0]]
    if not same or len(at[0]) < 2:
        return {}
    return {label: figures.series(at[0], [[y for _, y in points] for points in same])}


def _schedule(comparison: Comparison) -> Iterator[Plot]:
    drawn: set[tuple[int, int, float, int]] = set()
    for column in comparison.columns:
        runs = [run for entry in comparison.column(column) for run in entry.runs]
        continuous = [run for run in runs if run.config.setup.stream.kind == "continuous"]
        if not continuous:
            continue
        config, tasks = continuous[0].config, len(continuous[0].task_names)
        stream = config.setup.stream
        key = (tasks, stream.iterations, stream.beta, stream.batch_size)
        if key in drawn:
            continue
        drawn.add(key)
        title = "Which tasks the data comes from" + _of(comparison, column)
        yield Plot(
            f"schedule{_slug(comparison, column)}",
            title,
            "The share of each task in the batches over time. No learner is told: boundaries are undefined.",
            f"{tasks} tasks over {stream.iterations:,} iterations; each fades in while the one before it fades out.",
            figures.schedule(_stand_in(config, tasks), title=title),
        )


def _stand_in(config: RunConfig, tasks: int) -> Stream:
    """The run's stream over a few empty images: which task a sample comes from does not depend on the images."""
    import torch

    from bgd.scenarios import Continuous, DataSet, Part, permute, scenario

    part = Part(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.arange(2))
    cut = permute(DataSet("stand-in", part, part, ("a", "b")), tasks, shared_head=True)
    s = config.setup.stream
    return Continuous(
        cut,
        scenario("continuous task-agnostic"),
        iterations=s.iterations,
        beta=s.beta,
        batch_size=s.batch_size,
        seed=config.seed,
    )


def _stds(comparison: Comparison) -> Iterator[Plot]:
    for column in comparison.columns:
        for entry in comparison.column(column):
            runs = [run for run in entry.runs if len(run.stds) > 1]
            if not runs:
                continue
            moments = [h.after for h in runs[0].stds]
            same = [run for run in runs if [h.after for h in run.stds] == moments]
            # Noisy K-FAC has no noise before its first inversion: nothing to see, and no place on a logarithmic axis
            noisy = [any(run.stds[i].largest > 0 for run in same) for i in range(len(moments))]
            shown = [i for i, after in enumerate(moments) if after != "start" and noisy[i]]
            if not shown:
                continue
            # the only task of a run has a name that says nothing of it
            names = [
                _short(moments[i]) if len(runs[0].task_names) > 1 or i < len(moments) - 1 else "end" for i in shown
            ]
            edges, counts = merged_histograms([[run.stds[i] for run in same] for i in shown])
            start = runs[0].stds[0]
            alike = noisy[0] and math.isclose(start.smallest, start.largest, rel_tol=1e-3)
            std_init = start.largest if alike else None
            title = f"Posterior std, {_label(comparison, entry.row)}" + _of(comparison, column)
            yield Plot(
                f"stds-{_row_file(comparison, entry.row)}{_slug(comparison, column)}",
                title,
                "Histograms of the std of all weights: weights that matter become certain and move left, "
                "the others keep their plasticity. Height: the root of their share"
                + (f", {formatting.count(len(same), 'seed')} together." if len(same) > 1 else ".")
                + (" What lies beyond the axis is at its ends." if _beyond(same, shown) else ""),
                f"{len(shown)} histograms from {names[0]} to {names[-1]}; "
                f"smallest std {min(r.stds[-1].smallest for r in same):.2g} at the end.",
                figures.std_ridges(
                    edges,
                    counts,
                    names,
                    std_init=std_init and float(f"{std_init:.4g}"),
                    title=title,
                ),
                small=sum(len(run.stds) > 1 for e in comparison.column(column) for run in e.runs[:1]) > 2,
            )


def merged_histograms(moments: Sequence[Sequence[StdHistogram]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Histograms of several runs at each moment, brought to common edges (B + 1,) and added up (M, B).

    Within a bin, weights are taken to be spread evenly in the logarithm; where edges coincide nothing is lost.

    >>> one = StdHistogram(iteration=1, after="a", edges=[0.01, 0.1], counts=[4], smallest=0.02, largest=0.05)
    >>> two = StdHistogram(iteration=2, after="b", edges=[0.01, 0.1, 1], counts=[3, 1], smallest=0.02, largest=0.2)
    >>> merged_histograms([[one], [two]])[1].round(6).tolist()
    [[4.0, 0.0], [3.0, 1.0]]
    """
    edges = np.array(sorted({edge for moment in moments for h in moment for edge in h.edges}))
    at = np.log(edges)
    counts = np.zeros((len(moments), len(edges) - 1))
    for row, moment in zip(counts, moments, strict=True):
        for h in moment:
            row += np.diff(np.interp(at, np.log(h.edges), np.cumsum([0, *h.counts])))
    return edges, counts


def _matrix(comparison: Comparison) -> Iterator[Plot]:
    for column in comparison.columns:
        for entry in comparison.column(column):
            runs = [run.R for run in entry.runs if len(run.R) > 1]
            if not runs or not _same(np.shape(R) for R in runs):
                continue
            mean = np.mean(runs, axis=0)
            title = _label(comparison, entry.row) + _of(comparison, column)
            yield Plot(
                f"matrix-{_row_file(comparison, entry.row)}{_slug(comparison, column)}",
                title,
                f"Accuracy of {entry.row} on each task after each stage, %",
                "After the last stage: "
                + _list((f"task {j + 1}", f"{100 * value:.0f} %") for j, value in enumerate(mean[-1])),
                figures.heat_map(mean, title=title),
                small=True,
            )


_KINDS: dict[str, Callable[[Comparison], Iterator[Plot]]] = {
    "accuracy-by-task": _by_task,
    "each-task": _each_task,
    "schedule": _schedule,
    "stds": _stds,
    "learning-curves": _learning_curves,
    "matrix": _matrix,
}


def _of(comparison: Comparison, column: str) -> str:
    return f": {column}" if len(comparison.columns) > 1 else ""


def _labels(comparison: Comparison) -> list[str]:
    return [_label(comparison, row) for row in comparison.rows]


def _label(comparison: Comparison, row: str) -> str:
    """A row's name, short; those that look alike are numbered."""
    return _short(row) + _number(row, [other for other in comparison.rows if _short(other) == _short(row)], " ({})")


def _row_file(comparison: Comparison, row: str) -> str:
    """The same for a file's name."""
    return _file(row) + _number(row, [other for other in comparison.rows if _file(other) == _file(row)], "-{}")


def _number(row: str, alike: Sequence[str], form: str) -> str:
    return form.format(alike.index(row) + 1) if len(alike) > 1 else ""


def _slug(comparison: Comparison, column: str) -> str:
    """Part of a file's name; the column's number keeps apart names that look alike."""
    if len(comparison.columns) == 1:
        return ""
    return f"-{comparison.columns.index(column) + 1}-{_file(column)}".rstrip("-")


def _file(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40]


def _short(text: str, most: int = 28) -> str:
    """A label that leaves room for the figure."""
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= most else one_line[: most - 1] + "…"


def _seeds(entries: Iterable[Entry]) -> str:
    """A sentence for the caption where rows were run on different seeds: their means are over other worlds."""
    rows: dict[str, list[str]] = {}
    for entry in entries:
        if entry.runs:
            own = rows.setdefault(formatting.seeds([run.config.seed for run in entry.runs]), [])
            own += [entry.row] * (entry.row not in own)
    if len(rows) < 2:
        return ""
    return " Seeds differ: " + ", ".join(f"{numbers} ({'; '.join(own)})" for numbers, own in rows.items()) + "."


def _beyond(runs: Sequence[RunResult], moments: Sequence[int]) -> bool:
    """Whether some std lies outside its histogram's first or last bin, which then count it."""
    shown = [run.stds[i] for run in runs for i in moments]
    return any(h.smallest < h.edges[0] or h.largest > h.edges[-1] for h in shown if h.counts)


def _ends(curves: dict[str, figures.Series]) -> str:
    return "At the end: " + _list((label, f"{curve.mean[-1]:.4g}") for label, curve in curves.items())


def _list(items: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> str:
    return "; ".join(f"{name} {text}" for name, text in items) + "."


def _same(items: Iterator[object]) -> bool:
    return len(set(items)) == 1
