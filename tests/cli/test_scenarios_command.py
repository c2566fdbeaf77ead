import json

import pytest
from typer.testing import CliRunner

from bgd.cli import app
from bgd.cli.scenarios import DETAIL, REVEALED
from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.tree import QUESTIONS, SCENARIOS
from bgd.scenarios.types import Knowledge

run = CliRunner(env={"COLUMNS": "160"}).invoke


def test_shows_the_whole_tree():
    out = run(app, ["scenarios"]).output
    for text in [*QUESTIONS.values(), *(f"{name} learning" for name in SCENARIOS)]:
        assert text in out


def test_every_scenario_and_knowledge_is_described():
    assert set(DETAIL) == set(SCENARIOS)
    assert set(REVEALED) == set(Knowledge)


def test_answers_by_options():
    given = [
        "--boundaries",
        "yes",
        "--task-in-training",
        "yes",
        "--task-in-testing",
        "no",
        "--shared-head",
        "no",
    ]
    out = run(app, ["scenarios", *given]).output
    assert "class learning" in out
    assert "T x C" in out


def test_asks_only_what_is_still_open():
    result = run(app, ["scenarios", "--ask", "--boundaries", "yes"], input="y\nn\ny\n")
    assert result.exit_code == 0
    assert "domain learning" in result.output
    assert QUESTIONS["boundaries"] not in result.output


def test_missing_and_wrong_answers():
    assert run(app, ["scenarios", "--task-in-testing", "no"]).exit_code == 2
    assert run(app, ["scenarios", "--boundaries", "maybe"]).exit_code == 2
    result = run(app, ["scenarios", "--boundaries", "yes"])
    assert isinstance(result.exception, ScenarioError)
    with pytest.raises(ScenarioError, match="task_in_training"):
        raise result.exception


def test_the_tree_as_json_leads_to_every_scenario():
    node = json.loads(run(app, ["scenarios", "--json"]).stdout)
    found, todo = set(), [node]
    while todo:
        node = todo.pop()
        if "question" in node:
            assert node["question"] == QUESTIONS[node["key"]]
            todo += [node["yes"], node["no"]]
        else:
            found.add(node["scenario"])
    assert found == set(SCENARIOS)


def test_an_answer_as_json_with_questions_on_stderr():
    out = run(app, ["scenarios", "--json", "--ask", "--boundaries", "yes"], input="n\n").stdout
    verdict = json.loads(out)
    assert verdict["scenario"] == "discrete task-agnostic"
    assert (verdict["reveals"], verdict["boundaries"], verdict["shared_head"]) == ("nothing", True, True)
    assert verdict["asked"] == ["boundaries", "task_in_training"]


def test_yes_and_no_are_answers_too():
    letters, whole = (run(app, ["scenarios", "--ask"], input=text) for text in ("y\ny\nn\nn\n", "yes\nYes\nno\n no \n"))
    assert whole.exit_code == 0
    assert "Please enter" not in whole.output
    assert whole.output == letters.output
