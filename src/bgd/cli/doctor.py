"""``bgd doctor``: what is installed, which fast paths are active, where data and results go."""

from __future__ import annotations

import json
import os
import platform
import shutil
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import bgd.data
from bgd._version import __version__
from bgd.cli.requirements import COMMAND, dependencies, extras
from bgd.data.sources import locate
from bgd.data.types import DataError
from bgd.optim.compilation import can_compile
from bgd.runs.environment import available_cores, commit, results_folder


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False) -> None:
    """Show what is installed, which fast paths are active, and where data and results go. Exit code 1 on a problem."""
    found = examine()
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _print(found)
    if found["problems"]:
        raise typer.Exit(1)


def examine() -> dict[str, Any]:
    """Everything that the doctor reports.

    >>> sorted(examine())
    ['data', 'extras', 'fast paths', 'folders', 'problems', 'versions']
    """
    problems: list[str] = []
    runs = results_folder()
    folders = {"results": str(runs), "data cache": str(locate.cache_folder()), "data folder": "not set (BGD_DATA)"}
    available_data: dict[str, str] = {}
    try:
        folders["data folder"] = str(locate.data_folder() or folders["data folder"])
        available_data = bgd.data.available()
    except DataError as error:
        problems.append(str(error))
    for name, folder in (("results", runs), ("data cache", locate.cache_folder())):
        if not _writable(folder):
            problems.append(f"{name}: {folder} cannot be written to: set {_VARIABLES[name]} to another folder")
        elif (free := shutil.disk_usage(_existing(folder)).free) < 2**30:
            problems.append(f"{name}: only {free / 2**20:.0f} MB are free on the disk of {folder}")
    versions = {"bgd": __version__, "python": platform.python_version(), "commit": commit() or "not a checkout"}
    needed = [one for extra in ("", COMMAND) for one in dependencies(extra)]
    problems += [f"{one.name}: {one.describe()}: {_INSTALL.format(COMMAND)}" for one in needed if not one.met]
    return {
        "versions": versions | {one.name: one.describe() for one in needed},
        "extras": {extra: _describe_extra(extra) for extra in extras()},
        "fast paths": {
            "cores": f"{available_cores()}: bgd run uses as many processes, with one thread each",
            "BGD, all samples in one pass": "yes (torch.func.vmap)",
            "BGD, compiled": "possible (compile=true)" if can_compile() else "no C++ compiler: eager",
            "devices": ", ".join(_devices()),
        },
        "folders": folders,
        "data": {
            name: available_data.get(name, "not on this machine; fetched when first used") for name in bgd.data.names()
        },
        "problems": problems,
    }


_INSTALL = "pip install 'bgd[{}]'"
_VARIABLES = {"results": "BGD_RUNS", "data cache": "BGD_CACHE"}


def _print(found: dict[str, Any]) -> None:
    console = Console()
    for title, values in found.items():
        if title == "problems":
            continue
        table = Table(
            title=title, title_justify="left", title_style="bold", show_header=False, box=None, pad_edge=False
        )
        for name, value in values.items():
            table.add_row(escape(name), escape(str(value)))
        console.print(table, "")
    for problem in found["problems"]:
        console.print(f"problem: {problem}", style="red", markup=False, soft_wrap=True)
    if not found["problems"]:
        console.print("no problems found", style="green")


def _describe_extra(extra: str) -> str:
    unmet = [one for one in dependencies(extra) if not one.met]
    if not unmet:
        return "installed"
    return f"{_INSTALL.format(extra)} for {', '.join(one.name for one in unmet)}"


def _devices() -> list[str]:
    devices = ["cpu"]
    if torch.cuda.is_available():
        devices += [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        devices.append("mps")
    return devices


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def _writable(folder: Path) -> bool:
    existing = _existing(folder)
    return existing.is_dir() and os.access(existing, os.W_OK)
