"""The table of prequential streams."""

from made_runs import make_result

from bgd.report import all_tables, compare, to_text
from bgd.report.figures.learning_curves import plot_learning_curves
from bgd.report.tables.prequential import prequential
from bgd.runs.result import Alarm, Prequential


def streamed(row, log_loss, seed=2019, alarms=()):
    found = Prequential(
        examples=1000,
        accuracy=0.9,
        log_loss=log_loss,
        calibration_error=0.031,
        bins=[(1000, 900, 900)],
        alarms=[Alarm(at=at, since=at - 50, evidence=2e4) for at in alarms],
    )
    return make_result(row, 0.9, seed).model_copy(update={"prequential": found})


def test_log_loss_calibration_and_alarms_are_shown_with_the_best_in_bold():
    runs = [streamed("BGD", 0.25), streamed("BGD", 0.35, 2020, [1250, 7000]), streamed("SGD", 0.5, alarms=[420])]
    table = prequential(compare([*runs, streamed("SGD", 0.6, 2020)]))
    bgd, sgd = table.rows
    assert [cell.text for cell in bgd] == ["BGD", "0.300 ± 0.071", "3.1 ± 0.0", "0, 2"]
    assert sgd[3].text == "1, 0 (at 420)"
    assert [row[1].bold for row in table.rows] == [True, False]


def test_other_comparisons_have_no_such_table():
    comparison = compare([make_result("BGD", 0.9)])
    assert prequential(comparison) is None
    assert all("log-loss" not in to_text(table) for table in all_tables(comparison))


def test_the_curve_says_that_its_points_are_predictions():
    (plot, *_) = plot_learning_curves(compare([streamed("BGD", 0.3)]))
    assert plot.title == "Accuracy over time"
    assert "before their examples were learnt" in plot.caption
