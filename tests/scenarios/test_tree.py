import itertools

import pytest

from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.tree import QUESTIONS, SCENARIOS, choose_scenario, scenario
from bgd.scenarios.types import Knowledge, Scenario

EVERY = [dict(zip(QUESTIONS, answers, strict=True)) for answers in itertools.product([True, False], repeat=4)]


def from_the_paper(boundaries, task_in_training, task_in_testing, shared_head):
    """The tree of the paper's figure, written again."""
    if not boundaries:
        return "continuous task-agnostic", 1
    if not task_in_training:
        return "discrete task-agnostic", 2
    if task_in_testing:
        return "task", 3
    return ("domain" if shared_head else "class"), 4


@pytest.mark.parametrize("answers", EVERY)
def test_every_combination_of_answers(answers):
    choice = choose_scenario(**answers)
    name, asked = from_the_paper(**answers)
    assert choice.scenario.name == name
    assert choice.asked == tuple(QUESTIONS)[:asked]
    assert len(choice.notes) == 4 - asked
    assert choice.scenario.shared_head == answers["shared_head"]
    assert choice.scenario.boundaries == answers["boundaries"]


@pytest.mark.parametrize("answers", EVERY)
def test_what_is_unknown_is_withheld(answers):
    rules = choose_scenario(**answers).scenario
    known = answers["boundaries"] and answers["task_in_training"]
    assert rules.reveals == (Knowledge.TASK_ID if known else Knowledge.NOTHING)
    assert rules.task_in_testing == (known and answers["task_in_testing"])


def test_unasked_questions_may_stay_open_and_give_the_usual_scenario():
    assert choose_scenario(boundaries=False).scenario == SCENARIOS["continuous task-agnostic"]
    assert choose_scenario(boundaries=True, task_in_training=False).scenario == SCENARIOS["discrete task-agnostic"]
    task = choose_scenario(boundaries=True, task_in_training=True, task_in_testing=True)
    assert task.scenario == SCENARIOS["task"]
    assert "shared_head is not asked" in task.notes[0]


def test_separate_outputs_without_task_ids_come_with_a_warning():
    notes = choose_scenario(boundaries=False, shared_head=False).notes
    assert any("reveal the task" in note for note in notes)
    assert not any("reveal the task" in note for note in choose_scenario(boundaries=False).notes)


def test_an_open_question_is_named():
    with pytest.raises(ScenarioError, match="shared_head is not answered"):
        choose_scenario(boundaries=True, task_in_training=True, task_in_testing=False)


def test_scenarios_by_name():
    assert scenario("Discrete_Task-Agnostic").name == "discrete task-agnostic"
    with pytest.raises(ScenarioError, match=r"'offline'.*task, domain, class"):
        scenario("offline")


def test_contradictory_rules_are_rejected():
    with pytest.raises(ValueError, match="no boundaries"):
        Scenario("mine", Knowledge.BOUNDARIES, task_in_testing=False, shared_head=True, boundaries=False)
