from made_runs import make_config, make_result

from bgd.experiments.declaration import Reported
from bgd.report.summary import compare
from bgd.report.tables.catalog import extra_tables
from bgd.report.tables.tasks import each_task


def test_each_task_ours_beside_the_papers(results, experiment):
    reported = {"BGD": {"accuracy": Reported(mean=92, tasks=(95, 94, 93, 92, 86))}}
    declared = experiment.model_copy(update={"paper": reported})
    table = each_task(compare(results, declared), "accuracy")
    assert table.headers == ("method", "average", "task 1", "task 2", "task 3", "task 4", "task 5")
    bgd, sgd, offline = table.rows
    # after the last stage every task ends at the run's own accuracy: 91, 92, 93
    assert [cell.text for cell in bgd] == [
        "BGD",
        "92.00 ± 1.00 / 92.00",
        *(f"92.00 ± 1.00 / {p}.00" for p in (95, 94, 93, 92, 86)),
    ]
    assert sgd[2].text == "81.00 ± 1.41 / –"
    assert [[cell.bold for cell in row[2:]] for row in (bgd, sgd, offline)] == [[True] * 5, [False] * 5, [False] * 5]
    assert table in extra_tables(compare(results, declared))
    assert not extra_tables(compare(results, experiment))  # neither in the paper nor requested
    requested = experiment.model_copy(update={"figures": ("each-task",)})
    assert [t.title for t in extra_tables(compare(results, requested))] == ["Accuracy on each task at the end, %"]


def test_the_papers_values_are_not_shown_beside_tasks_from_other_data(experiment):
    reported = {"BGD": {"accuracy": Reported(mean=92, tasks=(95, 94, 93, 92, 86))}}
    declared = experiment.model_copy(update={"paper": reported})
    setup = make_config("BGD").setup.model_dump() | {"data": {"name": "mnist"}}
    table = each_task(compare([make_result("BGD", 0.92, setup=setup)], declared), "accuracy")
    assert [cell.text for cell in table.rows[0]] == ["BGD", *["92.00"] * 6]
