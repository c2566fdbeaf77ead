from made_runs import make_result

from bgd.experiments.declaration import Reported
from bgd.report.summary import compare
from bgd.report.tables.times import times
from bgd.runs.result import Machine


def test_times_are_multiples_of_one_row(experiment):
    setup = {"scenario": "domain", "tasks": {"count": 5}, "stream": {"kind": "discrete", "epochs": 2}}
    runs = [
        make_result(row, 0.9, seed, setup=setup).model_copy(update={"machine": Machine(train_seconds=seconds)})
        for row, seed, seconds in (("SGD", 1, 30), ("SGD", 2, 50), ("BGD", 1, 100))
    ]
    reported = {"SGD": {"accuracy": Reported(seconds=7.8)}, "BGD": {"accuracy": Reported(mean=89.04, seconds=83.8)}}
    timed = experiment.model_copy(update={"paper": reported, "times_of": "SGD"})
    table = times(compare(runs, timed))
    assert table.headers == ("method", "accuracy, %", "paper's", "s an epoch", "x SGD", "paper's s", "paper's x SGD")
    # two epochs of five tasks: 40 s / 10 and 100 s / 10
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["BGD", "90.00", "89.04", "10", "2.5", "83.8", "10.7"],
        ["SGD", "90.00 ± 0.00", "–", "4", "1.0", "7.8", "1.0"],
    ]
    assert times(compare(runs, experiment)) is None
    fading = {"scenario": "continuous task-agnostic", "stream": {"kind": "continuous", "iterations": 100}}
    without_epochs = [
        make_result("SGD", 0.9, 3, setup=setup | fading).model_copy(
            update={"machine": Machine(train_seconds=3), "iterations": 100}
        )
    ]
    table = times(compare(without_epochs, experiment.model_copy(update={"times_of": "SGD"})))
    assert (table.title, table.headers[-2:]) == ("Time of a training step", ("ms a step", "x SGD"))
    assert [cell.text for cell in table.rows[-1]][-2:] == ["30", "1.0"]
    assert [row[5].text for row in times(compare(runs[2:], timed)).rows] == ["83.8"]
