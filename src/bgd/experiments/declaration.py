"""What an experiment is: rows (methods) x columns (settings) x seeds, and what the paper reports of them.

An experiment is a declaration: it runs nothing. Built-in ones are Python files beside this one, a user's own is a TOML
file with the same fields, or an :class:`Experiment` made in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from bgd.errors import BGDError, suggest
from bgd.plugins import spec_of
from bgd.runs.config import Setup, Strict

Figure = Literal["accuracy-by-task", "each-task", "schedule", "stds", "matrix", "learning-curves"]
"""Average accuracy against tasks seen; accuracy on each task at the end; the task schedule; std histograms; heat map
of R; test accuracy over time."""


class ExperimentError(BGDError, ValueError):
    """An experiment that does not exist or is declared wrongly: the message names the key, the value and the fix."""


def check_seeds(seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Refuse seeds that are repeated or no whole numbers from 0.

    >>> check_seeds((2019, 2020))
    (2019, 2020)
    """
    whole = all(isinstance(seed, int) and seed >= 0 for seed in seeds)
    if not seeds or not whole or len(set(seeds)) < len(seeds):
        raise ExperimentError(f"seeds={list(seeds)}: give different whole numbers from 0")
    return seeds


Seeds = Annotated[tuple[int, ...], Field(min_length=1), AfterValidator(check_seeds)]


class Reported(Strict):
    """What the paper prints of one method in one setting; accuracies in percent.

    >>> Reported(mean=46.34, spread=2.36, runs=10).mean
    46.34
    """

    mean: float | None = Field(default=None, description="average accuracy over the tasks; None: not given")
    spread: float | None = Field(default=None, description="as printed after the plus-minus sign: a standard deviation")
    runs: int | None = None
    tasks: tuple[float, ...] = Field(default=(), description="accuracy on each task at the end")
    seconds: float | None = Field(default=None, description="of training, for an epoch")
    source: str = Field(default="", description="where the paper takes it from, if it is not its own")


class RowInColumn(Strict):
    """What a row changes in one column only."""

    settings: dict[str, Any] = Field(default_factory=dict)
    setup: Setup = Setup()


class Row(Strict):
    """A method with its settings; ``columns`` holds what differs in one of the columns.

    >>> Row(method="bgd", settings={"std_init": 0.017}).only is None
    True
    """

    method: str = Field(
        description="a name that `bgd methods` lists, or module:Class; in Python a class from a module will do"
    )
    settings: dict[str, Any] = Field(default_factory=dict)
    setup: Setup = Setup()
    columns: dict[str, RowInColumn] = Field(default_factory=dict)
    only: tuple[str, ...] | None = Field(default=None, description="the columns it takes part in; None for all")

    @field_validator("method", mode="before")
    @classmethod
    def _name_of_class(cls, method: Any) -> Any:
        """Worker processes and stored results find a class by its name."""
        return spec_of(method) if isinstance(method, type) else method


class Preset(Strict):
    """The same comparison at another scale."""

    about: str = ""
    expected_time: str = Field(default="", description="of all its runs on one core of a CPU, such as '3 h'")
    seeds: Seeds | None = None
    setup: Setup = Setup()
    columns: dict[str, Setup] = Field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict, description="of rows, by label")
    rows: tuple[str, ...] | None = Field(default=None, description="labels of the rows that take part; None for all")


class Experiment(Strict):
    """A declared comparison.

    A row overrides the experiment and a preset overrides both; in each of the three, what is given for one column
    overrides what is given for all. Only keys that are given count.

    >>> Experiment(name="e", title="E", rows={"A": {"method": "sgd", "only": ["B"]}})
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: 1 validation error for Experiment
      Value error, rows.A.only: no column 'B': choose one of accuracy [type=value_error, input_value=...
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    shows: str = Field(default="", description="what to look for, in a sentence or two")
    source: str = Field(default="", description="table or figure of the paper")
    setup: Setup = Setup()
    columns: dict[str, Setup] = Field(default_factory=lambda: {"accuracy": Setup()}, min_length=1)
    rows: dict[str, Row] = Field(min_length=1)
    seeds: Seeds = (2019,)
    paper: dict[str, dict[str, Reported]] = Field(
        default_factory=dict, description="what the paper reports, by row and column"
    )
    figures: tuple[Figure, ...] = ()
    highlight: str | None = Field(default=None, description="a row: figures emphasise it; None: the first row")
    times_of: str | None = Field(
        default=None, description="a row: run times are shown too, as multiples of that row's; None: they are not"
    )
    calibration: bool = Field(default=False, description="log-loss and calibration error are shown too")
    candidates: bool = Field(
        default=False,
        description="its columns are candidates for the same values of the paper: agreement is shown, but not counted",
    )
    counts_collapses: bool = Field(
        default=False, description="its result is how many runs collapsed, rather than their accuracy"
    )
    presets: dict[str, Preset] = Field(default_factory=lambda: {"full": Preset(about="as declared")}, min_length=1)
    notes: tuple[str, ...] = Field(default=(), description="choices that the paper leaves open, substitutes for data")
    import_paths: tuple[str, ...] = Field(
        default=(), description="folders with the modules of own methods, networks and data"
    )

    @model_validator(mode="after")
    def _check_names(self) -> Experiment:
        """Refuse names of rows or columns that the experiment does not have."""
        for where, what, names, known in _named(self):
            for name in names:
                if name not in known:
                    raise ValueError(f"{where}: no {what} {name!r}: {suggest(name, known)}")
        return self


def _named(experiment: Experiment) -> Iterator[tuple[str, str, Iterable[str], Mapping[str, Any]]]:
    """Each key that names rows or columns: the key, the kind of thing, the names, and those that exist."""
    rows, columns = experiment.rows, experiment.columns
    for label, row in rows.items():
        yield f"rows.{label}.only", "column", row.only or (), columns
        own = {column: columns.get(column) for column in row.only} if row.only else columns
        yield f"rows.{label}.columns", "column", row.columns, own
    for name, preset in experiment.presets.items():
        yield f"presets.{name}.columns", "column", preset.columns, columns
        yield f"presets.{name}.settings", "row", preset.settings, rows
        yield f"presets.{name}.rows", "row", preset.rows or (), rows
    yield "highlight", "row", [experiment.highlight] if experiment.highlight else (), rows
    yield "times_of", "row", [experiment.times_of] if experiment.times_of else (), rows
    yield "paper", "row", experiment.paper, rows
    for label, cells in experiment.paper.items():
        yield f"paper.{label}", "column", cells, columns
