"""Options that several commands share, and names for the shell's completion."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from bgd.experiments import EXPERIMENTS
from bgd.experiments.execution import ExecutorName
from bgd.methods import METHODS

PRESETS = ("smoke", "quick", "short", "paper")
"""The presets of the built-in experiments; not every one has a short one."""


def complete_experiment(incomplete: str) -> list[str]:
    """Names of experiments, for the shell's completion.

    >>> complete_experiment("vision")
    ['vision-mix']
    """
    return [name for name in EXPERIMENTS if name.startswith(incomplete)]


def complete_preset(incomplete: str) -> list[str]:
    """Names of presets, for the shell's completion.

    >>> complete_preset("s")
    ['smoke', 'short']
    """
    return [name for name in PRESETS if name.startswith(incomplete)]


def complete_method(incomplete: str) -> list[str]:
    """Names of methods, for the shell's completion.

    >>> complete_method("noisy")
    ['noisy-adam', 'noisy-kfac']
    """
    return [name for name in METHODS if name.startswith(incomplete)]


def parse_seeds(text: str) -> list[int]:
    """Seeds from numbers and ranges.

    >>> parse_seeds("7,2019-2021")
    [7, 2019, 2020, 2021]
    >>> try:
    ...     parse_seeds("two")
    ... except typer.BadParameter as error:
    ...     print(error)
    'two': give whole numbers and ranges, such as 2019-2021 or 1,2,3
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match or (match[2] and int(match[2]) < int(match[1])):
            raise typer.BadParameter(f"{text!r}: give whole numbers and ranges, such as 2019-2021 or 1,2,3")
        seeds += range(int(match[1]), int(match[2] or match[1]) + 1)
    return list(dict.fromkeys(seeds))


ExperimentName = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT",
        help="A name that bgd list shows, or a TOML file of your own.",
        autocompletion=complete_experiment,
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        min=0,
        help="Runs at a time, each in its own process; 0: one for each core (on Ray, of the cluster).",
    ),
]
Threads = Annotated[
    int,
    typer.Option(min=1, help="Threads of torch in each run. Results are the same bits for the same number."),
]
Executor = Annotated[
    ExecutorName,
    typer.Option("--executor", help="serial: in this process; processes: on this machine; ray: on a Ray cluster."),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Of a running Ray cluster, or auto; else RAY_ADDRESS; else Ray is started on this machine. Results must "
        "be on a file system that all nodes share.",
        show_default=False,
    ),
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep each run's last checkpoint, with the trained network.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON; nothing else on stdout.")]
OutFolder = Annotated[
    Path | None,
    typer.Option(help="The folder for results; else BGD_RUNS, else the one that bgd doctor shows.", show_default=False),
]
