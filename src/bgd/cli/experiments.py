"""``bgd list`` and ``bgd show``: which experiments there are, and what one of them does."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bgd.cli.run import SCALES, Name
from bgd.experiments import EXPERIMENTS, Experiment, load, plan
from bgd.experiments.plan import places, preset_of

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]


def list_(as_json: Json = False) -> None:
    """List the experiments: each table and figure of the paper, and the demo."""
    if as_json:
        print(json.dumps([_record(e) for e in EXPERIMENTS.values()], indent=2))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("what")
    for preset in SCALES:
        table.add_column(preset, justify="right")
    for experiment in EXPERIMENTS.values():
        counts = [str(len(places(experiment, one))) if one in experiment.presets else "" for one in SCALES]
        table.add_row(experiment.name, escape(experiment.title), *counts)
    console = Console()
    console.print(table)
    said = "numbers are runs, by preset; look at one: bgd show NAME; run it: bgd run NAME --preset quick"
    console.print(f"\n{said}", highlight=False)


def _record(experiment: Experiment) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "title": experiment.title,
        "methods": list(experiment.rows),
        "columns": list(experiment.columns),
        "presets": {
            name: {"about": preset.about, "runs": len(places(experiment, name))}
            for name, preset in experiment.presets.items()
        },
    }


def show(
    experiment: Name,
    preset: Annotated[str | None, typer.Option("--preset", "-p", help="Its scale.", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """Show what an experiment does: data, scenario, methods with their settings, and what the paper reports."""
    declared = load(experiment)
    scale, chosen = preset_of(declared, preset)
    configs = plan(declared, scale)
    if as_json:
        print(json.dumps([config.model_dump(mode="json") for config in configs], indent=2))
        return
    console = Console()
    say = console.print
    say(f"[bold]{escape(declared.title)}[/]")
    for text in (declared.shows, declared.source):
        if text:
            say(escape(text), highlight=False)
    say("\n[bold]presets[/]")
    for name, one in declared.presets.items():
        mark = "*" if name == scale else " "
        say(f" {mark} {name}: {len(plan(declared, name))} runs, {escape(one.about)}", highlight=False)
    say(f"\n[bold]settings[/] of the preset {scale}, seeds {_seeds(chosen.seeds or declared.seeds)}")
    for column in declared.columns:
        here = [config for config in configs if config.column == column]
        if here:
            say(
                f"\n [bold]{escape(column)}[/]  {escape(_setup(here[0].setup.model_dump(mode='json')))}",
                highlight=False,
            )
            say(_methods(declared, column, {config.row: config for config in here}))
    for note in declared.notes:
        say(f"[dim]note: {escape(note)}[/]", highlight=False)


def _methods(declared: Experiment, column: str, configs: dict[str, Any]) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2))
    for name in ("method", "settings", "paper, %" if declared.paper else ""):
        table.add_column(name)
    first = next(iter(configs.values())).setup.model_dump(mode="json")
    for row, config in configs.items():
        own = [f"{key}={value}" for key, value in config.settings.items()]
        own += _differences(first, config.setup.model_dump(mode="json"))
        said = declared.paper.get(row, {}).get(column)
        spread = f" ± {said.spread:g}" if said and said.spread is not None else ""
        table.add_row(
            escape(row), escape(", ".join(own)), f"{said.mean:.2f}{spread}" if said and said.mean is not None else ""
        )
    return table


def _setup(setup: dict[str, Any]) -> str:
    data, tasks, stream, net = (setup[key] for key in ("data", "tasks", "stream", "net"))
    size = f", first {data['train']:,} training images" if data["train"] else ""
    if data["shape"]:
        size += ", as " + "x".join(map(str, data["shape"]))
    augment = stream["augment"]
    changed = [f"crops from a frame of {augment['crop']}"] * bool(augment["crop"]) + ["mirrored"] * augment["flip"]
    if changed:
        size += f" ({', '.join(changed)})"
    length = (
        f"{stream['epochs']} epochs a task" if stream["kind"] == "discrete" else f"{stream['iterations']:,} iterations"
    )
    tasks_in_all = len(data["mix"]) or (len(tasks["degrees"]) if tasks["kind"] == "rotate" else tasks["count"])
    count = "one task" if tasks["kind"] == "whole" else f"{tasks_in_all} tasks ({tasks['kind']})"
    if stream["kind"] == "drifting":
        count = f"turning from {stream['start']:g} to {stream['end']:g} degrees, tested at {stream['moments']} moments"
    images = ", ".join(one["name"] for one in data["mix"]) or data["name"]
    precision = f", products in {net['precision']}" if net["precision"] != "float32" else ""
    widths = " " + "-".join(map(str, net["widths"])) if net["name"] == "mlp" else ""
    return (
        f"{images}{size}; {setup['scenario']} learning, {count}, {length}, batch {stream['batch_size']}; "
        f"{net['name']}{widths}, init {net['init']}{precision}; loss over {setup['loss_over'] or 'the usual outputs'}; "
        f"inference {setup['test']['inference']}"
    )


def _differences(first: dict[str, Any], other: dict[str, Any], path: str = "") -> list[str]:
    """What a row's setup has that the column's first row has not."""
    found = []
    for key, value in other.items():
        if isinstance(value, dict):
            found += _differences(first[key], value, f"{path}{key}.")
        elif value != first[key]:
            found.append(f"{path}{key}={value}")
    return found


def _seeds(seeds: tuple[int, ...]) -> str:
    if len(seeds) > 2 and seeds == tuple(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return ", ".join(map(str, seeds))
