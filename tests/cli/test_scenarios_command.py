import pytest
from typer.testing import CliRunner

from bgd.cli import app
from bgd.cli.scenarios import DETAIL, TOLD
from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.knowledge import Knowledge
from bgd.scenarios.tree import QUESTIONS, SCENARIOS

run = CliRunner(env={"COLUMNS": "160"}).invoke


def test_shows_the_whole_tree():
    out = run(app, ["scenarios"]).output
    for text in [*QUESTIONS.values(), *(f"{name} learning" for name in SCENARIOS)]:
        assert text in out


def test_every_scenario_and_knowledge_has_words():
    assert set(DETAIL) == set(SCENARIOS)
    assert set(TOLD) == set(Knowledge)


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
