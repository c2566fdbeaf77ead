"""``bgd list`` and ``bgd show``: which experiments there are, and what one of them does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bgd.cli.options import PRESETS, ExperimentName, Json, complete_preset
from bgd.experiments import EXPERIMENTS, Experiment, Preset, load, make_plan
from bgd.experiments.selection import find_preset, select_runs
from bgd.experiments.text import count
from bgd.runs.config import RunConfig


def list_(as_json: Json = False) -> None:
    """List the experiments: each table and figure of the paper, and the demo."""
    if as_json:
        print(json.dumps([_record(e) for e in EXPERIMENTS.values()], indent=2))
        return
    console = Console()
    console.print(_time_line("", PRESETS), style="bold")
    for experiment in EXPERIMENTS.values():
        times = [experiment.presets[name].expected_time if name in experiment.presets else "" for name in PRESETS]
        console.print(_time_line(experiment.name, times), highlight=False)
        console.print(Padding(Text(experiment.title, style="dim"), (0, 0, 0, 2)))
    console.print("\nExpected times of all runs on one core of a CPU. Next: bgd show NAME", highlight=False)


def _time_line(name: str, times: Sequence[str]) -> str:
    return f"{name:<26}" + "".join(f"{time:>13}" for time in times)


def _record(experiment: Experiment) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "title": experiment.title,
        "rows": list(experiment.rows),
        "columns": list(experiment.columns),
        "presets": {
            name: {
                "about": preset.about,
                "expected_time": preset.expected_time,
                "runs": len(select_runs(experiment, name)),
            }
            for name, preset in experiment.presets.items()
        },
    }


def show(
    experiment: ExperimentName,
    preset: Annotated[
        str | None,
        typer.Option("--preset", "-p", help="Its scale.", autocompletion=complete_preset, show_default=False),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="As for bgd run; may be repeated.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what an experiment does: data, scenario, methods with their settings, and what the paper reports."""
    plan = make_plan(load(experiment), preset, overrides=overrides)
    if as_json:
        print(json.dumps([config.model_dump(mode="json") for config in plan.configs], indent=2))
        return
    declared, console = plan.experiment, Console()
    console.print(f"[bold]{escape(declared.title)}[/]")
    for text in (declared.shows, declared.source):
        if text:
            console.print(escape(text), highlight=False)
    console.print("\n[bold]presets[/]")
    for name, one in declared.presets.items():
        console.print(escape(_describe_preset(declared, name, one, chosen=name == plan.preset)), highlight=False)
    _, scale = find_preset(declared, plan.preset)
    seeds = _format_seeds(scale.seeds or declared.seeds)
    console.print(f"\n[bold]settings[/] of the preset {plan.preset}, seeds {seeds}")
    for column in declared.columns:
        configs = {config.row: config for config in plan.configs if config.column == column}
        if configs:
            setup = next(iter(configs.values())).setup.model_dump(mode="json")
            console.print(f"\n [bold]{escape(column)}[/]  {escape(_describe_setup(setup))}", highlight=False)
            console.print(_method_table(declared, column, configs))
    for note in declared.notes:
        console.print(f"[dim]note: {escape(note)}[/]", highlight=False)


def _describe_preset(experiment: Experiment, name: str, preset: Preset, chosen: bool) -> str:
    runs = count(len(select_runs(experiment, name)), "run")
    time = f", {preset.expected_time} on one core" if preset.expected_time else ""
    return f" {'*' if chosen else ' '} {name}: {runs}{time}; {preset.about}".rstrip("; ")


def _method_table(declared: Experiment, column: str, configs: dict[str, RunConfig]) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2))
    for name in ("method", "settings", "paper, %" if declared.paper else ""):
        table.add_column(name)
    first = next(iter(configs.values())).setup.model_dump(mode="json")
    for row, config in configs.items():
        own = [f"{key}={value}" for key, value in config.settings.items()]
        own += _differences(first, config.setup.model_dump(mode="json"))
        reported = declared.paper.get(row, {}).get(column)
        value = ""
        if reported and reported.mean is not None:
            value = f"{reported.mean:.2f}" + (f" ± {reported.spread:g}" if reported.spread is not None else "")
        table.add_row(escape(row), escape(", ".join(own)), value)
    return table


def _describe_setup(setup: dict[str, Any]) -> str:
    data, tasks, stream, net = (setup[key] for key in ("data", "tasks", "stream", "net"))
    size = f", first {data['train']:,} training images" if data["train"] else ""
    if data["shape"]:
        size += ", as " + "x".join(map(str, data["shape"]))
    augment = stream["augment"]
    augmented = [f"crops from a frame of {augment['crop']}"] * bool(augment["crop"]) + ["mirrored"] * augment["flip"]
    if augmented:
        size += f" ({', '.join(augmented)})"
    length = (
        f"{stream['epochs']} epochs a task" if stream["kind"] == "discrete" else f"{stream['iterations']:,} iterations"
    )
    total = len(data["mix"]) or (len(tasks["degrees"]) if tasks["kind"] == "rotate" else tasks["count"])
    number = "one task" if tasks["kind"] == "whole" else f"{total} tasks ({tasks['kind']})"
    if stream["kind"] == "drifting":
        number = f"turning from {stream['start']:g} to {stream['end']:g} degrees, tested at {stream['moments']} moments"
    images = ", ".join(one["name"] for one in data["mix"]) or data["name"]
    precision = f", products in {net['precision']}" if net["precision"] != "float32" else ""
    widths = " " + "-".join(map(str, net["widths"])) if net["name"] == "mlp" else ""
    return (
        f"{images}{size}; {setup['scenario']} learning, {number}, {length}, batch {stream['batch_size']}; "
        f"{net['name']}{widths}, init {net['init']}{precision}; loss over {setup['loss_over'] or 'the usual outputs'}; "
        f"inference {setup['test']['inference']}"
    )


def _differences(first: dict[str, Any], other: dict[str, Any], path: str = "") -> list[str]:
    """Where a row's setup differs from that of the column's first row."""
    found = []
    for key, value in other.items():
        if isinstance(value, dict):
            found += _differences(first[key], value, f"{path}{key}.")
        elif value != first[key]:
            found.append(f"{path}{key}={value}")
    return found


def _format_seeds(seeds: tuple[int, ...]) -> str:
    if len(seeds) > 2 and seeds == tuple(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return ", ".join(map(str, seeds))
