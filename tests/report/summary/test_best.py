from made_runs import make_result

from bgd.report.summary import compare
from bgd.report.tables.tasks import each_task


def test_upper_bounds_are_never_the_best(comparison):
    assert [entry.row for entry in comparison.entries.values() if entry.best] == ["BGD"]


def test_best_is_decided_on_common_seeds():
    """A seed can be easier than another: a mean over other seeds proves nothing."""
    easy, hard = 2020, 2019
    ours = [make_result("BGD", 0.89, hard), make_result("BGD", 0.93, easy)]

    def best(*others):
        return [entry.row for entry in compare([*ours, *others]).entries.values() if entry.best]

    easier = make_result("SGD", 0.99, 2021)  # 91 against 93.7 on average, but 91 against 91 on the seeds of both
    assert best(make_result("SGD", 0.92, easy), make_result("SGD", 0.89, hard), easier) == ["BGD"]
    assert best(make_result("SGD", 0.94, easy), make_result("SGD", 0.89, hard)) == ["SGD"]
    assert best(make_result("SGD", 0.93, easy), make_result("SGD", 0.89, hard)) == ["BGD", "SGD"]


def test_nothing_is_the_best_on_a_single_seed():
    one = [make_result("BGD", 0.9), make_result("SGD", 0.5)]
    assert not [entry for entry in compare(one).entries.values() if entry.best]
    lone = [*one, make_result("BGD", 0.9, 2020), make_result("SGD", 0.5, 2020), make_result("Adam", 0.1)]
    assert not [entry for entry in compare(lone).entries.values() if entry.best]  # Adam has one


def test_upper_bounds_are_never_the_best_on_a_task(results):
    table = each_task(compare(results), "accuracy")
    assert table is not None
    bold = {row[0].text for row in table.rows for cell in row[2:] if cell.bold}
    assert bold == {"BGD"}
