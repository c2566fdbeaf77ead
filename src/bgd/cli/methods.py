"""``bgd methods``: the methods, and the settings of one of them."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bgd import plugins
from bgd.cli.options import Json, complete_method
from bgd.errors import BGDError
from bgd.methods import METHODS, find_method, settings_of

GROUP = "bgd.methods"


def methods(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A method, or module:Class of your own.",
            autocompletion=complete_method,
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the methods (built-in ones, and those of installed packages), or show one with its settings."""
    console = Console()
    if name is not None:
        record = describe_method(name)
        if as_json:
            print(json.dumps(record, indent=2, default=str))
        else:
            _print_method(console, record)
        return
    records = [_describe_if_possible(one) for one in plugins.names(METHODS, GROUP)]
    if as_json:
        print(json.dumps(records, indent=2, default=str))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("needs", no_wrap=True)
    table.add_column("what")
    for record in records:
        table.add_row(escape(record["name"]), record["needs"], escape(record["about"]))
    console.print(table)
    console.print("\nsettings of one: bgd methods NAME; your own: module:Class", highlight=False)


def _describe_if_possible(name: str) -> dict[str, Any]:
    """As :func:`describe_method`; an installed package whose method cannot be imported hides no other."""
    try:
        return describe_method(name)
    except BGDError as error:
        return {"name": name, "about": f"cannot be used: {error}", "needs": "", "settings": {}}


def describe_method(name: str) -> dict[str, Any]:
    """A method's name, first line of documentation, needs and settings.

    >>> describe_method("adam")["settings"]
    {'lr': 0.001}
    """
    method = find_method(name)
    text = (inspect.getdoc(method) or "").partition("\n>>>")[0].strip()  # without examples
    return {
        "name": name,
        "class": f"{method.__module__}:{method.__qualname__}",
        "about": text.partition("\n")[0],
        "documentation": text,
        "needs": method.needs.name.lower().replace("_", " "),
        "settings": settings_of(name),
    }


def _print_method(console: Console, record: dict[str, Any]) -> None:
    console.print(f"[bold]{escape(record['name'])}[/] ({escape(record['class'])}), needs: {record['needs']}\n")
    console.print(record["documentation"], markup=False, highlight=False)
    table = Table("setting", "default", title="\nsettings", title_justify="left", box=None, pad_edge=False)
    for setting, default in record["settings"].items():
        table.add_row(escape(setting), escape(str(default)))
    console.print(table)
