"""What an experiment is: rows (methods) x columns (settings) x seeds, and what the paper reports of them.

An experiment is a declaration: it runs nothing. Built-in ones are Python files beside this one, a user's own is a TOML
file with the same fields.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from bgd.errors import BGDError
from bgd.runs.config import Setup, Strict

Figure = Literal["accuracy-by-task", "each-task", "schedule", "stds", "matrix", "learning-curves"]
"""Average accuracy against tasks seen; accuracy on each task at the end; the task schedule; std histograms; heat map
of R; test accuracy over time."""


class ExperimentError(BGDError, ValueError):
    """An experiment that does not exist or is declared wrongly: says where, and what was meant."""

    exit_code = 2


def _distinct(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ValueError("seeds must be different whole numbers from 0")
    return seeds


Seeds = Annotated[tuple[int, ...], Field(min_length=1), AfterValidator(_distinct)]


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


class Cell(Strict):
    """What is special about a method in one column."""

    settings: dict[str, Any] = Field(default_factory=dict)
    setup: Setup = Setup()


class Row(Strict):
    """A method with its settings; in a column, what ``columns`` says of that column stands over it.

    >>> Row(method="bgd", settings={"std_init": 0.017}).only is None
    True
    """

    method: str = Field(description="a key of bgd.methods.METHODS")
    settings: dict[str, Any] = Field(default_factory=dict)
    setup: Setup = Setup()
    columns: dict[str, Cell] = Field(default_factory=dict)
    only: tuple[str, ...] | None = Field(default=None, description="the columns it takes part in; None for all")


class Preset(Strict):
    """The same comparison at another scale: stands over everything else that is declared."""

    about: str = ""
    seeds: Seeds | None = None
    setup: Setup = Setup()
    columns: dict[str, Setup] = Field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict, description="of rows, by label")
    rows: tuple[str, ...] | None = Field(default=None, description="labels of the rows that take part; None for all")


class Experiment(Strict):
    """A declared comparison.

    What stands over what, from the ground up: ``setup``, the column, the row, the row in that column, the preset, the
    preset's column. Only what is given counts; the rest shows through.
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
    times_of: str | None = Field(
        default=None, description="a row: run times are shown too, as multiples of that row's; None: they are not"
    )
    candidates: bool = Field(
        default=False,
        description="its columns are candidates for the same values of the paper: agreement is shown, but not counted",
    )
    presets: dict[str, Preset] = Field(default_factory=lambda: {"full": Preset(about="as declared")}, min_length=1)
    notes: tuple[str, ...] = Field(default=(), description="choices that the paper leaves open, stand-ins")
    highlight: str | None = Field(default=None, description="a row: figures emphasise it; None: the first row")
