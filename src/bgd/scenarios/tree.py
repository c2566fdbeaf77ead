"""The paper's four questions and the tree that turns four answers into a scenario.

The tree is data (``TREE``), and walking it is a pure function (``choose_scenario``): the command and the tests read
the same one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.types import Knowledge, Scenario

QUESTIONS: dict[str, str] = {
    "boundaries": "Are the boundaries between tasks well defined?",
    "task_in_training": "Is the task identity known during training?",
    "task_in_testing": "Is the task identity known during testing?",
    "shared_head": "Do tasks share the output head (C outputs, not T x C)?",
}

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario("task", Knowledge.TASK_ID, task_in_testing=True, shared_head=False),
        Scenario("domain", Knowledge.TASK_ID, task_in_testing=False, shared_head=True),
        Scenario("class", Knowledge.TASK_ID, task_in_testing=False, shared_head=False),
        Scenario("discrete task-agnostic", Knowledge.NOTHING, task_in_testing=False, shared_head=True),
        Scenario(
            "continuous task-agnostic",
            Knowledge.NOTHING,
            task_in_testing=False,
            shared_head=True,
            boundaries=False,
        ),
    )
}


@dataclass(frozen=True)
class Question:
    """A node of the tree: a key of ``QUESTIONS``, and the question or scenario each answer leads to."""

    key: str
    yes: Question | str
    no: Question | str


TREE = Question(
    "boundaries",
    yes=Question(
        "task_in_training",
        yes=Question(
            "task_in_testing",
            yes="task",
            no=Question("shared_head", yes="domain", no="class"),
        ),
        no="discrete task-agnostic",
    ),
    no="continuous task-agnostic",
)


class Choice(NamedTuple):
    """Where four answers lead: the scenario, the questions that led there, and notes on the others."""

    scenario: Scenario
    asked: tuple[str, ...]
    notes: tuple[str, ...]


def choose_scenario(
    *,
    boundaries: bool,
    task_in_training: bool | None = None,
    task_in_testing: bool | None = None,
    shared_head: bool | None = None,
) -> Choice:
    """Walk the tree with the answers to the four questions.

    A question that the branch does not ask may stay unanswered (None). The answer to an unasked
    ``shared_head`` still decides the layout of the outputs; any other has no effect, and a note reports it.

    >>> choose_scenario(boundaries=True, task_in_training=True, task_in_testing=False, shared_head=False).scenario.name
    'class'
    >>> choose_scenario(boundaries=False).scenario.reveals
    <Knowledge.NOTHING: 0>
    >>> choose_scenario(boundaries=True)
    Traceback (most recent call last):
    bgd.scenarios.errors.ScenarioError: task_in_training is not answered: Is the task ...
    """
    answers = {
        "boundaries": boundaries,
        "task_in_training": task_in_training,
        "task_in_testing": task_in_testing,
        "shared_head": shared_head,
    }
    node: Question | str = TREE
    asked: list[str] = []
    while isinstance(node, Question):
        answer = answers[node.key]
        if answer is None:
            raise ScenarioError(f"{node.key} is not answered: {QUESTIONS[node.key]} Answer yes or no")
        asked.append(node.key)
        node = node.yes if answer else node.no
    scenario = SCENARIOS[node]
    unasked = [key for key in QUESTIONS if key not in asked]
    if shared_head is not None:
        scenario = replace(scenario, shared_head=shared_head)
    return Choice(scenario, tuple(asked), tuple(_describe_unasked(scenario, key, answers[key]) for key in unasked))


def scenario(name: str) -> Scenario:
    """The scenario of that name; hyphens and underscores count as spaces.

    >>> scenario("continuous-task-agnostic") is scenario("continuous task-agnostic")
    True
    >>> scenario("tasks")
    Traceback (most recent call last):
    bgd.scenarios.errors.ScenarioError: no scenario 'tasks': choose one of task, domain, class, discrete ...
    """
    for known, found in SCENARIOS.items():
        if _normalise_name(known) == _normalise_name(name):
            return found
    raise ScenarioError(f"no scenario {name!r}: choose one of {', '.join(SCENARIOS)}")


def _normalise_name(name: str) -> str:
    return name.lower().replace("-", " ").replace("_", " ").strip()


def _describe_unasked(scenario: Scenario, key: str, answer: bool | None) -> str:
    """The effect of a question that this branch does not ask."""
    if key == "shared_head":
        layout = "C shared outputs" if scenario.shared_head else "T x C separate outputs"
        origin = "its usual layout" if answer is None else "as answered"
        note = f"shared_head is not asked in {scenario.name} learning: {layout}, {origin}"
        if scenario.reveals is Knowledge.NOTHING and not scenario.shared_head:
            note += "; beware that with separate outputs the labels reveal the task"
        return note
    ignored = "" if answer is None else " and its answer has no effect"
    return f"{key} is not asked in {scenario.name} learning{ignored}: the task stays unknown"
