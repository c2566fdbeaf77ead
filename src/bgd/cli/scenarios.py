"""``bgd scenarios``: show the tree of the four questions, or answer them."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.prompt import Confirm
from rich.table import Table
from rich.tree import Tree

from bgd.scenarios.tree import QUESTIONS, SCENARIOS, TREE, Choice, Question, choose_scenario
from bgd.scenarios.types import Knowledge, Scenario


class Answer(StrEnum):
    """Yes or no, as typed on the command line."""

    YES = "yes"
    NO = "no"


REVEALED = {
    Knowledge.NOTHING: "nothing",
    Knowledge.BOUNDARIES: "when a task ends",
    Knowledge.TASK_ID: "the task, and when it ends",
}
DETAIL = {
    "task": "the right head can be chosen at test",
    "domain": "same question, different inputs",
    "class": "task and label must be inferred",
    "discrete task-agnostic": "sharp switches, never announced",
    "continuous task-agnostic": "tasks fade into each other, or data drifts",
}


def _option(key: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(show_default=False, case_sensitive=False, help=QUESTIONS[key])
    return option


def scenarios(
    boundaries: Annotated[Answer | None, _option("boundaries")] = None,
    task_in_training: Annotated[Answer | None, _option("task_in_training")] = None,
    task_in_testing: Annotated[Answer | None, _option("task_in_testing")] = None,
    shared_head: Annotated[Answer | None, _option("shared_head")] = None,
    ask_me: Annotated[bool, typer.Option("--ask", help="Answer interactively, question by question.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Show the tree of continual learning scenarios, or find yours by answering its four questions."""
    console = Console(stderr=as_json)  # questions go to stderr, so that stdout is JSON and nothing else
    given = {
        "boundaries": boundaries,
        "task_in_training": task_in_training,
        "task_in_testing": task_in_testing,
        "shared_head": shared_head,
    }
    answers = {key: None if value is None else value is Answer.YES for key, value in given.items()}
    if ask_me:
        answers = _ask_questions(console, answers)
    elif all(value is None for value in answers.values()):
        if as_json:
            print(json.dumps(_tree_as_data(TREE), indent=2))
            return
        console.print(_make_tree(TREE))
        console.print("\n[dim]Answer them with --ask, or e.g. --boundaries yes --task-in-training no[/]")
        return
    elif answers["boundaries"] is None:
        raise typer.BadParameter(f"answer this first: {QUESTIONS['boundaries']}", param_hint="--boundaries")
    choice = choose_scenario(**answers)  # type: ignore[arg-type]  # boundaries is answered by now
    if as_json:
        print(json.dumps(_as_data(choice.scenario) | {"asked": choice.asked, "notes": choice.notes}, indent=2))
    else:
        _print_choice(console, choice)


def _as_data(scenario: Scenario) -> dict[str, object]:
    return {
        "scenario": scenario.name,
        "detail": DETAIL[scenario.name],
        "boundaries": scenario.boundaries,
        "reveals": scenario.reveals.name.lower(),
        "task_in_testing": scenario.task_in_testing,
        "shared_head": scenario.shared_head,
    }


def _tree_as_data(node: Question | str) -> dict[str, object]:
    if isinstance(node, str):
        return _as_data(SCENARIOS[node])
    return {
        "key": node.key,
        "question": QUESTIONS[node.key],
        "yes": _tree_as_data(node.yes),
        "no": _tree_as_data(node.no),
    }


def _ask_questions(console: Console, answers: dict[str, bool | None]) -> dict[str, bool | None]:
    """Ask the open questions of the branch."""
    answers = dict(answers)
    node: Question | str = TREE
    while isinstance(node, Question):
        answer = answers[node.key]
        if answer is None:
            answer = answers[node.key] = _YesOrNo.ask(QUESTIONS[node.key], console=console)
        node = node.yes if answer else node.no
    return answers


class _YesOrNo(Confirm):
    """Accepts yes and no, and their first letters, in any case."""

    def process_response(self, value: str) -> bool:
        answer = value.strip().lower()
        return super().process_response({"yes": "y", "no": "n"}.get(answer, answer))


def _make_tree(node: Question) -> Tree:
    tree = Tree(f"[bold]{QUESTIONS[node.key]}[/] [dim]--{node.key.replace('_', '-')}[/]")
    _add_branches(tree, node)
    return tree


def _add_branches(tree: Tree, node: Question) -> None:
    for answer, following in (("yes", node.yes), ("no", node.no)):
        if isinstance(following, Question):
            branch = tree.add(
                f"{answer}: [bold]{QUESTIONS[following.key]}[/] [dim]--{following.key.replace('_', '-')}[/]"
            )
            _add_branches(branch, following)
        else:
            tree.add(f"{answer}: [bold green]{following} learning[/], {DETAIL[following]}")


def _print_choice(console: Console, choice: Choice) -> None:
    scenario = choice.scenario
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("scenario", f"[bold green]{scenario.name} learning[/], {DETAIL[scenario.name]}")
    table.add_row("revealed to a learner", REVEALED[scenario.reveals])
    table.add_row("given at test", "sample and task" if scenario.task_in_testing else "the sample alone")
    table.add_row("outputs", "C, shared by all tasks" if scenario.shared_head else "T x C, C for each task")
    table.add_row("asked", ", ".join(key.replace("_", " ") for key in choice.asked))
    console.print(table)
    for note in choice.notes:
        console.print(f"[dim]note: {note}[/]")
