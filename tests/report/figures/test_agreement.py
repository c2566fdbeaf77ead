"""The figure of the paper's values against ours."""

from bgd.report.figures.agreement import plot_agreement
from bgd.report.verdicts import Outcome, judge


def test_each_compared_value_is_a_mark_at_its_place(comparison):
    items = judge([comparison])
    compared = [cell for item in items for cell in item.cells if cell.as_stated or cell.deviating]
    (plot,) = plot_agreement(items)
    (points,) = plot.draw.args
    assert sorted((point.paper, point.ours) for point in points) == sorted(
        (cell.paper.mean, cell.as_stated.entry.ours.mean) for cell in compared
    )
    assert {point.label: point.outcome for point in points}["SGD, accuracy"] is Outcome.OPEN
    assert [point.label for point in points if point.emphasised] == ["BGD, accuracy"]
    assert "agrees as stated: 1; agrees with a named deviation: 0; open: 1." in plot.alt


def test_nothing_to_compare_is_no_figure():
    assert list(plot_agreement([])) == []
