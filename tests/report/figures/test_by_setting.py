import pytest
from made_runs import make_result

from bgd.report.figures.catalog import draw_plots
from bgd.report.summary import compare
from bgd.runs.result import RunResult


def test_columns_named_after_a_number_become_an_axis():
    def run(row: str, tasks: int, named: int | None = None) -> RunResult:
        return make_result(row, 0.9 - tasks / 100, column=f"{named or tasks} tasks", setup={"tasks": {"count": tasks}})

    made = compare(run(row, tasks) for row in ("BGD", "SGD") for tasks in (5, 10))
    ax = draw_plots(made)[0].figure.axes[0]
    assert ax.get_xlabel() == "tasks"
    assert sorted(ax.lines[0].get_xdata().tolist()) == [5, 10]
    assert ax.get_xscale() == "linear"
    one_each = compare(run(row, tasks) for row, tasks in (("BGD", 5), ("SGD", 10)))
    assert "by-setting" not in [plot.name for plot in draw_plots(one_each)]
    shortened = compare(run(row, 5, named) for row in ("BGD", "SGD") for named in (5, 300))
    assert "by-setting" not in [plot.name for plot in draw_plots(shortened)], "300 is a name, and no setting of any run"


def test_a_search_over_orders_of_magnitude_is_drawn_in_order_on_a_logarithmic_axis():
    columns = {f"coefficient {c:g}": c for c in (10, 0.1, 0.0001)}
    made = compare(
        make_result(row, 0.5 + c / 100, column=name, settings={"coefficient": c})
        for row in ("MAS", "EWC")
        for name, c in columns.items()
    )
    ax = draw_plots(made)[0].figure.axes[0]
    assert (ax.get_xlabel(), ax.get_xscale()) == ("coefficient", "log")
    assert ax.lines[0].get_xdata().tolist() == [0.0001, 0.1, 10]
    assert ax.lines[0].get_ydata().tolist() == pytest.approx([50.0001, 50.1, 60])
