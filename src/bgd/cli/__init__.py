"""The command ``bgd``, assembled from one file per command group.

A group is a file of this folder with its own ``app = typer.Typer(...)`` (or one plain function), added by one line.
Exit codes: 0 done; 1 something that was requested correctly failed, such as a run or a download; 2 wrong usage; 130
interrupted. Errors are one line on stderr.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from bgd._version import __version__
from bgd.cli import data, experiments
from bgd.cli.doctor import doctor
from bgd.cli.methods import methods
from bgd.cli.pack import pack
from bgd.cli.report import compare, report
from bgd.cli.resume import resume
from bgd.cli.run import run
from bgd.cli.scenarios import scenarios
from bgd.cli.watch import watch
from bgd.errors import BGDError, MissingExtraError

app = typer.Typer(
    name="bgd",
    help="Learn from data that changes over time, without forgetting and without task boundaries.",
    invoke_without_command=True,
    pretty_exceptions_show_locals=False,
)


FIRST_STEPS = {
    "bgd run digits --preset quick": "the demo, on embedded data: about a minute",
    "bgd scenarios --ask": "which scenario is yours? four questions",
    "bgd watch FILE --target COLUMN": "learn a growing CSV file, with alarms when it changes",
    "bgd list": "the experiments, and how long each takes",
    "bgd methods": "the methods, and their settings",
    "bgd doctor": "what is installed, and what is missing",
    "bgd --install-completion": "complete commands with the tab key",
}
"""What to try first; shown by ``bgd`` alone."""


def _print_first_steps() -> None:
    console = Console(highlight=False)
    console.print(f"[bold]bgd[/bold] {__version__}: learn from data that changes, without forgetting. Try:\n")
    for command, purpose in FIRST_STEPS.items():
        console.print(f"  [bold]{command:<31}[/bold] {purpose}", soft_wrap=True)
    console.print("\nAll commands: bgd --help")


def _print_version(requested: bool) -> None:
    if requested:
        print(f"bgd {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    del version  # handled by its callback, before any command runs
    if context.invoked_subcommand is None:
        _print_first_steps()


app.add_typer(data.app, name="data")
app.command(name="scenarios")(scenarios)
app.command(name="methods")(methods)
app.command(name="list")(experiments.list_)
app.command(name="show")(experiments.show)
app.command(name="run")(run)
app.command(name="resume")(resume)
app.command(name="report")(report)
app.command(name="compare")(compare)
app.command(name="pack")(pack)
app.command(name="watch")(watch)
app.command(name="doctor")(doctor)


def main(args: list[str] | None = None) -> None:
    """Run the command; an error that the user can fix becomes one line on stderr and an exit code, not a traceback.

    >>> main(["--version"])
    Traceback (most recent call last):
    SystemExit: 0
    """
    try:
        app(args=args, prog_name="bgd")
    except BGDError as error:
        # soft_wrap: one line stays one line for scripts; markup off: a path may hold square brackets
        Console(stderr=True).print(f"bgd: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        if (module := (error.name or "bgd").partition(".")[0]) == "bgd":
            raise
        print(f"bgd: {MissingExtraError(module, 'experiments')}", file=sys.stderr)
        sys.exit(MissingExtraError.exit_code)
