"""The tables of a comparison, and their forms: rich for the terminal, plain text and Markdown for files."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from bgd.report import formatting
from bgd.report.statistics import Summary, Verdict, summarise
from bgd.report.summary import Comparison, Entry, at_end, best_of
from bgd.runs.result import RunResult

MEASURES = ("forgetting", "backward_transfer", "forward_transfer", "anytime_accuracy")
INFERENCES = ("map", "mc", "vote", "mean_softmax")
MARKS = {Verdict.AGREES: "✓", Verdict.HIGHER: "↑", Verdict.LOWER: "↓", Verdict.UNKNOWN: ""}
TONES = {Verdict.AGREES: "green", Verdict.HIGHER: "cyan", Verdict.LOWER: "yellow", Verdict.UNKNOWN: "dim"}


@dataclass(frozen=True)
class Cell:
    """Text of a table, and how it is meant.

    Attributes:
        text: plain.
        bold: the best of its column.
        tone: a colour of rich, where there are colours.
    """

    text: str
    bold: bool = False
    tone: str = ""


@dataclass(frozen=True)
class Table:
    """A title, headers and rows; the first column holds names, the others values."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def overview(comparison: Comparison) -> Table:
    """Methods by settings: mean and spread, the best in bold, a mark where the paper's value is known."""
    rows = []
    for row in comparison.rows:
        cells = [Cell(row)]
        for column in comparison.columns:
            entry = comparison.entries.get((row, column))
            cells.append(Cell(formatting.NONE) if entry is None else _ours(entry, mark=True))
        rows.append(tuple(cells))
    return Table(comparison.title, ("method", *comparison.columns), tuple(rows))


def detail(comparison: Comparison) -> Table:
    """A line for each method and setting: ours, the paper's, the difference, whether they agree, seeds, time."""
    several = len(comparison.columns) > 1
    headers = ["method"] + ["setting"] * several + ["ours, %"]
    headers += ["paper, %", "ours - paper", "agreement"] * comparison.has_paper + ["seeds", "time a run"]
    rows = []
    for column in comparison.columns:
        alike = len({tuple(run.config.seed for run in entry.runs) for entry in comparison.column(column)}) == 1
        for entry in comparison.column(column):
            cells = [Cell(entry.row)] + [Cell(column)] * several + [_ours(entry)]
            if comparison.has_paper:
                cells += [
                    Cell(formatting.value(entry.paper)),
                    Cell(formatting.change(entry.gap) if entry.gap else formatting.NONE),
                ]
                cells.append(Cell(agreement(entry), tone=TONES[entry.verdict]))
            cells += [
                _seeds(entry, alike),
                Cell(formatting.NONE if entry.seconds is None else formatting.duration(entry.seconds)),
            ]
            rows.append(tuple(cells))
    return Table(comparison.title, tuple(headers), tuple(rows))


def measures(comparison: Comparison) -> Table | None:
    """What else was measured, in percent: forgetting, transfer, and the accuracy by each way of inference."""
    runs = comparison.runs
    several = len(comparison.columns) > 1
    names = [name for name in MEASURES if any(name in run.metrics for run in runs)]
    ways = [how for how in INFERENCES if any(how in run.by_inference for run in runs)]
    if len(ways) < 2:
        ways = []  # one way is that of the main table
    if not names and not ways:
        return None
    rows = []
    for column in comparison.columns:
        for entry in comparison.column(column):
            cells = [entry.row] + [column] * several
            for name in names:
                cells.append(
                    formatting.value(summarise(100 * r.metrics[name] for r in entry.runs if name in r.metrics))
                )
            for how in ways:
                found = [100 * value for r in entry.runs for key, value in r.by_inference.items() if key == how]
                cells.append(formatting.value(summarise(found)))
            rows.append(tuple(map(Cell, cells)))
    headers = ["method"] + ["setting"] * several + [n.replace("_", " ") for n in names]
    return Table(comparison.title, (*headers, *(how.replace("_", " ") for how in ways)), tuple(rows))


def each_task(comparison: Comparison, column: str) -> Table | None:
    """Accuracy on each task at the end, ours / the paper's; None where a column has no tasks, or one."""
    entries = [entry for entry in comparison.column(column) if len(entry.tasks) > 1]
    names = list(dict.fromkeys(name for entry in entries for name in entry.tasks))
    if not names:
        return None
    best = {name: best_of((entry for entry in entries if name in entry.tasks), partial(_on, name)) for name in names}
    paper = any(e.reported and e.reported.tasks for e in entries)
    rows = []
    for entry in entries:
        said = dict(zip(entry.tasks, entry.reported.tasks if entry.reported else (), strict=False))
        cells = [Cell(entry.row), Cell(_beside(entry.ours, entry.paper.mean if entry.paper else None, paper))]
        cells += [
            Cell(_beside(entry.tasks.get(name), said.get(name), paper), bold=entry in best[name]) for name in names
        ]
        rows.append(tuple(cells))
    title = "Accuracy on each task at the end, %" + ": ours / paper" * paper
    return Table(_titled(title, comparison, column), ("method", "average", *names), tuple(rows))


def _on(task: str, run: RunResult) -> float:
    return at_end(run)[task]


def times(comparison: Comparison) -> Table | None:
    """Time of training, and how many times that of the row that the declaration names.

    Seconds for an epoch, as the paper has it; where a stream has no epochs, milliseconds for an iteration.
    """
    base = comparison.experiment.times_of if comparison.experiment else None
    done = [entry for entry in comparison.entries.values() if entry.step_seconds]
    if base is None or not done:
        return None
    epochs = all(entry.epoch_seconds for entry in done)
    several = len(comparison.columns) > 1
    paper = any(e.reported and e.reported.seconds for e in comparison.entries.values())
    rows = []
    for column in comparison.columns:
        entries = {entry.row: entry for entry in comparison.column(column)}
        took = {row: e.epoch_seconds if epochs else 1e3 * (e.step_seconds or 0) for row, e in entries.items()}
        said = {row: e.reported.seconds for row, e in entries.items() if e.reported}
        for row, entry in entries.items():
            cells = [row] + [column] * several + [formatting.value(entry.ours)]
            cells += [formatting.value(entry.paper)] * paper
            cells += _time(took[row], took.get(base))
            cells += _time(said.get(row), said.get(base)) if paper else []
            rows.append(tuple(map(Cell, cells)))
    headers = ["method"] + ["setting"] * several + ["accuracy, %"] + ["paper's"] * paper
    headers += ["s an epoch" if epochs else "ms a step", f"x {base}"] + ["paper's s", f"paper's x {base}"] * paper
    return Table(f"Time of a training {'epoch' if epochs else 'step'}", tuple(headers), tuple(rows))


def extras(comparison: Comparison) -> list[Table]:
    """What the experiment asks for beside the usual: accuracy on each task, run times."""
    experiment = comparison.experiment
    if experiment is None:
        return []
    told = any(said.tasks for cells in experiment.paper.values() for said in cells.values())
    found = [
        each_task(comparison, column) for column in comparison.columns if told or "each-task" in experiment.figures
    ]
    return [table for table in (*found, times(comparison)) if table is not None]


def tables(comparison: Comparison) -> list[Table]:
    """What a reader wants to see: the overview where there are several settings, the details, what is asked for."""
    return [overview(comparison)] * (len(comparison.columns) > 1) + [detail(comparison)] + extras(comparison)


def agreement(entry: Entry) -> str:
    """In words, with a mark; why nothing can be said, if so.

    >>> agreement(Entry("BGD", "accuracy", runs=()))
    'not in the paper'
    """
    if entry.paper is None:
        return "not in the paper"
    if entry.ours is None:
        return "no result"
    if not entry.comparable:
        return "not the paper's runs"
    said = entry.verdict
    return f"{MARKS[said]} {said}".strip()


def to_rich(table: Table) -> RichTable:
    """For a terminal.

    >>> to_rich(Table("t", ("method",), ((Cell("BGD"),),))).row_count
    1
    """
    made = RichTable(title=escape(table.title), title_justify="left", header_style="bold", box=None, pad_edge=False)
    for i, header in enumerate(table.headers):
        numeric = i > 0 and header not in ("setting", "agreement")
        made.add_column(escape(header), justify="right" if numeric else "left", overflow="fold")
    for row in table.rows:
        made.add_row(*(_styled(cell) for cell in row))
    return made


def to_text(table: Table) -> str:
    """Plain text, the same on every machine.

    >>> print(to_text(Table("t", ("method", "ours, %"), ((Cell("BGD"), Cell("46.20", bold=True)),))))
    t
    method  ours, %
    BGD       46.20
    """
    buffer = io.StringIO()
    # wide enough for any table: whoever reads the file decides where lines break
    Console(file=buffer, width=400, color_system=None, force_terminal=False).print(to_rich(table))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines() if line.strip())


def to_markdown(table: Table) -> str:
    r"""A Markdown table, the best in bold.

    >>> print(to_markdown(Table("t", ("method", "ours, %"), ((Cell("A|B"), Cell("46.20", bold=True)),))))
    | method | ours, % |
    |:--|--:|
    | A\|B | **46.20** |
    """
    rule = [":--" if i == 0 or h in ("setting", "agreement") else "--:" for i, h in enumerate(table.headers)]
    lines = [_line([markdown_text(h) for h in table.headers]), "|" + "|".join(rule) + "|"]
    lines += [
        _line([f"**{markdown_text(c.text)}**" if c.bold else markdown_text(c.text) for c in row]) for row in table.rows
    ]
    return "\n".join(lines)


def markdown_text(text: str) -> str:
    r"""Text that means nothing to Markdown or HTML, on one line.

    >>> markdown_text("a|b <i> *c*")
    'a\\|b &lt;i&gt; \\*c\\*'
    """
    one_line = " ".join(text.split())
    escaped = re.sub(r"([\\`*_\[\]|$~#])", r"\\\1", one_line)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _ours(entry: Entry, mark: bool = False) -> Cell:
    if entry.ours is None:
        failed = any(one.state == "failed" for one in entry.unfinished)
        return Cell("failed" if failed else "not finished", tone="red")
    said = MARKS[entry.verdict] if mark else ""
    return Cell(f"{formatting.value(entry.ours)} {said}".strip(), bold=entry.best)


def _beside(ours: Summary | None, paper: float | None, both: bool) -> str:
    return formatting.value(ours) + (f" / {formatting.NONE if paper is None else f'{paper:.2f}'}" if both else "")


def _time(seconds: float | None, unit: float | None) -> list[str]:
    ratio = f"{seconds / unit:.1f}" if seconds and unit else formatting.NONE
    return [f"{seconds:.3g}" if seconds else formatting.NONE, ratio]


def _titled(title: str, comparison: Comparison, column: str) -> str:
    return f"{title}: {column}" if len(comparison.columns) > 1 else title


def _seeds(entry: Entry, alike: bool) -> Cell:
    """How many; which, where the rows of a column differ in them."""
    failed = sum(one.state == "failed" for one in entry.unfinished)
    text = f"{len(entry.runs)} of {entry.wanted}" if entry.unfinished else str(len(entry.runs))
    text += f" ({formatting.seeds([run.config.seed for run in entry.runs])})" if entry.runs and not alike else ""
    text += f", {failed} failed" if failed else ""
    text += f", {entry.warned} with a warning" if entry.warned else ""
    return Cell(text, tone="red" if entry.unfinished else "yellow" if entry.warned else "")


def _styled(cell: Cell) -> str:
    style = " ".join(part for part in ("bold" if cell.bold else "", cell.tone) if part)
    return f"[{style}]{escape(cell.text)}[/]" if style else escape(cell.text)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
