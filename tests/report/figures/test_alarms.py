"""Alarms beside accuracy over time."""

from made_runs import make_result

from bgd.report.figures.alarms import draw_with_alarms, find_marks
from bgd.report.figures.lines import make_series
from bgd.report.figures.style import assign_looks
from bgd.report.summary import compare
from bgd.runs.result import Alarm, Prequential


def streamed(row, accuracy, alarms):
    raised = [Alarm(at=at, since=at, evidence=1e5) for at in alarms]
    found = Prequential(
        examples=1000, accuracy=accuracy, log_loss=0.3, calibration_error=0.1, bins=[[0.0, 0.0, 0.0]], alarms=raised
    )
    return make_result(row, accuracy, 2019).model_copy(update={"prequential": found})


def test_the_alarms_are_those_of_the_best_learner_in_iterations():
    runs = [streamed("BGD", 0.9, [256, 512]), streamed("SGD", 0.8, [100])]
    comparison = compare(runs)
    batch = runs[0].config.setup.stream.batch_size
    marks = find_marks(comparison, comparison.columns[0])
    assert marks is not None
    assert (marks.label, marks.iterations) == ("BGD", (256 / batch, 512 / batch))


def test_no_alarm_no_mark():
    quiet, other = compare([streamed("BGD", 0.9, [])]), compare([make_result("BGD", 0.9, 2019)])
    assert find_marks(quiet, quiet.columns[0]) is None
    assert find_marks(other, other.columns[0]) is None


def test_a_line_stands_where_the_alarm_was():
    curves = {"BGD": make_series([0, 10], [[90, 80]])}
    figure = draw_with_alarms(curves, assign_looks(["BGD"]), [4.0], "t")
    assert [line.get_xdata()[0] for line in figure.axes[0].lines[1:]] == [4.0]
