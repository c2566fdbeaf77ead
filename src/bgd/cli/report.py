"""``bgd report`` and ``bgd compare``: from folders of runs to tables, figures and a page."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bgd.report import formatting
from bgd.report.export import to_json
from bgd.report.findings import headline
from bgd.report.load import load
from bgd.report.notes import excluded_runs
from bgd.report.section import headings
from bgd.report.side_by_side import pair_up, side_by_side, title_of, to_table
from bgd.report.statistics import Verdict
from bgd.report.summary import Comparison
from bgd.report.tables import Table, all_tables, to_markdown, to_rich
from bgd.report.write import DEFAULT_FORMATS, FORMATS, write, write_markdown
from bgd.runs.environment import results_folder

MOST_TABLES = 3
"""Of more comparisons than this, the terminal shows what was found instead of the tables."""

Json = Annotated[bool, typer.Option("--json", help="Print the numbers as JSON; nothing else on stdout.")]
Folder = Annotated[Path, typer.Argument(help="A folder of results, see bgd run.", show_default=False)]


def report(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...", help="Of comparisons, see bgd run; by default all results.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The folder to write to; by default report/ in the only FOLDER, else in this folder.",
            show_default=False,
        ),
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", "-f", help=f"Some of {', '.join(FORMATS)}, separated by commas; or all.")
    ] = ",".join(DEFAULT_FORMATS),
    markdown: Annotated[
        Path | None,
        typer.Option(help="Write this Markdown file and its pages instead, for a repository.", show_default=False),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(
            help="The folder for the pages of --markdown, one for each experiment; by default pages/ beside it.",
            show_default=False,
        ),
    ] = None,
    tensorboard: Annotated[
        Path | None,
        typer.Option(help="Write TensorBoard event files to this folder instead.", show_default=False),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Of the page or document.", show_default=False)] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no tables.")] = False,
    as_json: Json = False,
) -> None:
    """Make tables, figures and self-contained pages from the results of runs, also of incomplete comparisons.

    Prints the tables, or of many comparisons what each found, and the path of the page. The same results give the same
    files, byte for byte. Figures are drawn once and kept in the cache.
    """
    given = folders or [results_folder()]
    if pages and not markdown:
        raise typer.BadParameter("only together with --markdown", param_hint="--pages")
    for name, instead in (("--markdown", markdown), ("--tensorboard", tensorboard)):
        if instead and (out or formats != ",".join(DEFAULT_FORMATS)):
            raise typer.BadParameter(
                f"cannot be combined with {name}, which names its own path", param_hint="--out, --format"
            )
    if markdown and tensorboard:
        raise typer.BadParameter("one at a time", param_hint="--markdown, --tensorboard")
    if tensorboard is not None:
        from bgd.report.tensorboard import write_events

        count = write_events(given, tensorboard)
        print(f"{formatting.count(count, 'run')}: show them with tensorboard --logdir {shlex.quote(str(tensorboard))}")
        return
    wanted = list(FORMATS) if formats == "all" else [one.strip() for one in formats.split(",") if one.strip()]
    for one in wanted:
        if one not in FORMATS:
            raise typer.BadParameter(f"no {one!r}: choose from {', '.join(FORMATS)}, or all", param_hint="--format")
    comparisons = load(given)
    if not (quiet or as_json):
        _print(comparisons)
    cores = os.cpu_count() or 1
    target = out or (given[0] / "report" if len(given) == 1 else Path("report"))
    command = _command(given, markdown, pages, title)
    if markdown is not None:
        written = [write_markdown(comparisons, markdown, pages, command=command, title=title, processes=cores)]
    else:
        written = write(comparisons, target, wanted, command=command, title=title, processes=cores)
    if as_json:
        print(to_json(comparisons), end="")
    elif written and not quiet:
        print(written[0].resolve())


def _print(comparisons: list[Comparison]) -> None:
    """The tables; of many comparisons a sentence each, since their tables are on the pages."""
    console = Console()
    if len(comparisons) <= MOST_TABLES:
        for comparison in comparisons:
            print_tables(console, comparison, all_tables(comparison))
        return
    for comparison, heading in zip(comparisons, headings(comparisons), strict=True):
        console.print(heading, style="bold", highlight=False, markup=False)
        console.print(f"{headline(comparison)}\n", highlight=False, markup=False)


def compare(
    a: Folder,
    b: Folder,
    as_json: Json = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown instead.")] = False,
) -> None:
    """Compare two folders of results side by side: the difference of the means, with its standard error."""
    sides = load(a), load(b)
    found = [(one, two, side_by_side(one, two)) for one, two in pair_up(*sides)]
    if as_json:
        record = [
            {"experiment": one.name, "a": str(a), "b": str(b)}
            | {f"preset_{side}": which.preset for side, which in (("a", one), ("b", two))}
            | {f"overrides_{side}": list(which.overrides) for side, which in (("a", one), ("b", two))}
            | {
                "pairs": [
                    asdict(pair)
                    | {"difference": asdict(gap) if (gap := pair.difference) else None, "verdict": pair.verdict}
                    for pair in pairs
                ]
            }
            for one, two, pairs in found
        ]
        print(json.dumps(record, indent=2))
        return
    console = Console()
    for i, (one, two, pairs) in enumerate(found):
        table = to_table(pairs, title_of(one, two))
        if as_markdown:
            print(("\n" if i else "") + to_markdown(table))
        else:
            console.print(to_rich(table))
            console.print()
    if not as_markdown:
        console.print(f"A is {a}\nB is {b}", style="dim", highlight=False, markup=False, soft_wrap=True)
    for which, name in enumerate("AB"):
        if alone := [c for c in sides[which] if not any(c is pair[which] for pair in found)]:
            names = ", ".join(" ".join(filter(None, (c.name or "unnamed", c.preset, *c.overrides))) for c in alone)
            Console(stderr=True).print(f"only in {name}: {names}", style="yellow", highlight=False, markup=False)


def print_tables(console: Console, comparison: Comparison, chosen: Iterable[Table]) -> None:
    """Print tables of a comparison, its overrides, whether it agrees with the paper, and what is missing."""
    for table in chosen:
        console.print(to_rich(table))
        console.print()
    if comparison.overrides:
        text = f"with {', '.join(comparison.overrides)}\n"
        console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)
    verdicts = comparison.verdicts
    if verdicts:
        agree = sum(verdict is Verdict.AGREES for verdict in verdicts)
        console.print(f"{agree} of {len(verdicts)} agree with the paper\n", style="green" if agree else "")
    for line in excluded_runs(comparison):
        console.print(f"{line}\n", style="yellow", highlight=False)
    if comparison.unfinished:
        missing = len(comparison.unfinished)
        failed = sum(one.state == "failed" for one in comparison.unfinished)
        failures = f", {failed} failed" if failed else ""
        total = formatting.count(missing + len(comparison.runs), "run")
        console.print(f"not complete: {missing} of {total} missing{failures}; continue with bgd resume\n", style="red")


def _command(folders: list[Path], markdown: Path | None, pages: Path | None, title: str | None) -> str:
    """The command to type again, without defaults and without the path of the program."""
    parts = ["bgd", "report", *map(str, folders)]
    for name, given in (("--markdown", markdown), ("--pages", pages), ("--title", title)):
        if given is not None:
            parts += [name, str(given)]
    return shlex.join(parts)
