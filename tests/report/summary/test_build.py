import pytest
from made_runs import make_config, make_result

from bgd.report.statistics import Summary, Verdict
from bgd.report.summary import Unfinished, compare
from bgd.report.tables.render import to_text
from bgd.report.tables.results import detail
from bgd.runs.result import Machine


def test_means_spreads_and_verdicts(comparison):
    bgd, sgd = comparison.entries["BGD", "accuracy"], comparison.entries["SGD", "accuracy"]
    assert bgd.ours == Summary(pytest.approx(92), pytest.approx(1), 3)
    assert (bgd.verdict, sgd.verdict) == (Verdict.AGREES, Verdict.LOWER)
    assert comparison.verdicts == [Verdict.AGREES, Verdict.LOWER]


def test_order_is_that_of_the_declaration(results, experiment):
    assert compare(results[::-1], experiment).rows == ("BGD", "SGD", "Offline")
    assert compare(results[::-1]).rows == ("BGD", "Offline", "SGD")


def test_processor_time_is_used_where_a_run_has_measured_it():
    def run(seed, **machine):
        return make_result("SGD", 0.9, seed).model_copy(update={"machine": Machine(**machine)})

    mixed = compare([run(1, seconds=900.0), run(2, seconds=30.0, work_seconds=20.0)])
    assert mixed.entries["SGD", "accuracy"].seconds == 20.0
    clock = compare([run(1, seconds=900.0)])
    assert clock.entries["SGD", "accuracy"].seconds == 900.0


def test_a_comparison_without_results():
    made = compare([], unfinished=[Unfinished(make_config("BGD"), "not finished")])
    assert "not finished" in to_text(detail(made))
    assert not made.verdicts


def test_candidates_for_one_value_are_not_counted(results, experiment):
    several = compare(results, experiment.model_copy(update={"candidates": True}))
    assert several.verdicts == []
    assert "✓ agrees" in to_text(detail(several))


def test_a_repeated_task_has_a_name_of_its_own():
    run = make_result("BGD", 0.9)
    run.task_names[3] = run.task_names[0]
    (entry,) = compare([run]).entries.values()
    assert list(entry.tasks) == ["task 1", "task 2", "task 3", "task 1 (2)", "task 5"]
    assert [end.mean for end in entry.tasks.values()] == pytest.approx([100 * value for value in run.R[-1]])
