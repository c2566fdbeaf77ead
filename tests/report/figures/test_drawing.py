import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import TASKS, make_result

from bgd.report.figures import drawing as figures
from bgd.report.figures import style
from bgd.report.figures.catalog import plots
from bgd.report.figures.drawing import _apart
from bgd.report.statistics import Summary
from bgd.report.summary import compare
from bgd.runs.result import Fit, RunResult


def test_lines_have_title_labels_bands_and_ends():
    curves = {
        "BGD": figures.series([1, 2, 3], [[90, 89, 88], [92, 91, 90]]),
        "SGD": figures.series([1, 2, 3], [[90, 80, 70]]),
    }
    figure = figures.lines(curves, title="Average accuracy", xlabel="number of tasks", whole_x=True)
    ax = figure.axes[0]
    assert figure.get_suptitle() == "Average accuracy"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("number of tasks", "accuracy, %")
    assert [line.get_label() for line in ax.lines] == ["BGD", "SGD"]
    assert ax.lines[0].get_ydata().tolist() == [91, 90, 89]
    assert len(ax.collections) == 1  # one seed has no band
    assert {text.get_text() for text in ax.texts} == {"BGD", "SGD"}


def test_band_is_one_spread():
    ax = figures.lines({"BGD": figures.series([0, 1], [[90, 90], [92, 92]])}, title="", xlabel="").axes[0]
    y = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (y.min(), y.max()) == (pytest.approx(91 - 2**0.5), pytest.approx(91 + 2**0.5))


def test_noise_is_not_blown_up_to_a_result():
    curves = {"A": figures.series([1, 2], [[90.0, 90.1]]), "B": figures.series([1, 2], [[90.1, 90.0]])}
    low, high = figures.lines(curves, title="", xlabel="").axes[0].get_ylim()
    assert high - low == pytest.approx(4)
    assert (low + high) / 2 == pytest.approx(90.05)


def test_forest_shows_ours_and_the_papers():
    rows = [
        ("A", Summary(50, 2, 3), Summary(51, 3, 10)),
        ("B", None, Summary(40, 1, 10)),
        ("C", Summary(9, None, 1), None),
    ]
    ax = figures.forest(rows, title="t").axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["A", "B", "C"]
    assert [(bar.get_x(), bar.get_width()) for bar in ax.patches] == [(48, 6), (39, 2)]
    assert len(ax.containers) == 2 + 2  # two bands, two dots


def test_ridges_are_shares_whatever_the_number_of_weights():
    ax = figures.std_ridges([1e-3, 1e-2, 1e-1], [[1, 1], [100, 100]], ["a", "b"], std_init=0.06).axes[0]
    assert ax.get_xscale() == "log"
    tops = [line.get_ydata().max() - base for line, base in zip(ax.lines, (1, 0))]  # noqa: B905
    assert tops[0] == pytest.approx(tops[1])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "a"]
    assert "initial std 0.06" in [text.get_text() for text in ax.texts]


def test_heat_map_leaves_out_what_was_not_measured():
    ax = figures.heat_map([[0.9, np.nan], [0.5, 1.0]], title="t").axes[0]
    assert [text.get_text() for text in ax.texts] == ["90", "50", "100"]


def test_bars_of_each_task_beside_the_papers_lines():
    ours = [Summary(80, 2, 3), Summary(60, None, 1)]
    figure = figures.task_bars(
        [("BGD", ours, [82.5, 61]), ("SGD", ours[::-1], []), ("Adam", ours, [])], "ab", title="t"
    )
    assert [panel.get_title(loc="left") for panel in figure.axes if panel.axison] == ["BGD", "SGD", "Adam"]
    bgd, sgd = figure.axes[:2]
    assert [bar.get_height() for bar in bgd.patches] == [80, 60]
    assert [bar.get_height() for bar in sgd.patches] == [60, 80]
    assert [line.get_ydata()[0] for line in bgd.lines if len(set(line.get_ydata())) == 1][-2:] == [82.5, 61]
    assert len(figure.legends) == 1
    assert not figures.task_bars([("BGD", ours, [])], "ab", title="t").legends


def test_every_kind_of_figure_is_drawn(comparison):
    drawn = plots(comparison)
    names = [plot.name for plot in drawn]
    assert names == [
        "results",
        "accuracy-by-task",
        "each-task",
        "schedule",
        "stds-bgd",
        "learning-curves",
        "training-loss",
        "matrix-bgd",
        "matrix-sgd",
        "matrix-offline",
    ]
    by_name = dict(zip(names, drawn, strict=True))
    assert len(by_name["accuracy-by-task"].figure.axes[0].lines) == 3
    assert len(by_name["schedule"].figure.axes[0].lines) == 2 * TASKS
    assert len(by_name["stds-bgd"].figure.axes[0].get_yticklabels()) == TASKS
    assert "BGD 92.00 ± 1.00, paper 92.00 ± 1.00" in by_name["results"].alt
    for plot in drawn:
        assert plot.caption
        assert plot.alt
        assert style.png(plot.figure) == style.png(plot.figure)
        assert style.svg(plot.figure) == style.svg(plot.figure)
        ET.fromstring(style.inline_svg(plot.figure, plot.name))


def test_training_images_beside_the_test_images():
    run = make_result("BGD", 0.9)
    fits = [Fit(iteration=e.iteration, accuracy=[0.99] * TASKS, loss=[0.125] * TASKS) for e in run.evaluations]
    drawn = {
        plot.name: plot for plot in plots(compare([run.model_copy(update={"fits": fits}), make_result("SGD", 0.8)]))
    }
    accuracy, loss = (drawn[name].figure.axes[0].lines for name in ("learning-curves", "learning-curves-loss"))
    assert [line.get_label() for line in accuracy] == ["BGD, test", "BGD, training", "SGD"]
    assert accuracy[1].get_ydata().tolist() == pytest.approx([99] * TASKS)
    assert [line.get_label() for line in loss] == ["BGD, test", "BGD, training"]
    assert [line.get_ydata()[-1] for line in loss] == [0.5, 0.125]


def test_the_declaration_chooses(results, experiment):
    chosen = experiment.model_copy(update={"figures": ("schedule",)})
    assert [plot.name for plot in plots(compare(results, chosen))] == ["results", "schedule"]


def test_columns_that_count_become_an_axis():
    def run(row: str, tasks: int, named: int | None = None) -> RunResult:
        return make_result(row, 0.9 - tasks / 100, column=f"{named or tasks} tasks", setup={"tasks": {"count": tasks}})

    made = compare(run(row, tasks) for row in ("BGD", "SGD") for tasks in (5, 10))
    ax = plots(made)[0].figure.axes[0]
    assert ax.get_xlabel() == "tasks"
    assert sorted(ax.lines[0].get_xdata().tolist()) == [5, 10]
    assert ax.get_xscale() == "linear"
    one_each = compare(run(row, tasks) for row, tasks in (("BGD", 5), ("SGD", 10)))
    assert "by-setting" not in [plot.name for plot in plots(one_each)]
    shortened = compare(run(row, 5, named) for row in ("BGD", "SGD") for named in (5, 300))
    assert "by-setting" not in [plot.name for plot in plots(shortened)], "300 is a name here, and no setting"


def test_a_search_over_orders_of_magnitude_is_drawn_in_order_on_a_logarithmic_axis():
    columns = {f"coefficient {c:g}": c for c in (10, 0.1, 0.0001)}
    made = compare(
        make_result(row, 0.5 + c / 100, column=name, settings={"coefficient": c})
        for row in ("MAS", "EWC")
        for name, c in columns.items()
    )
    ax = plots(made)[0].figure.axes[0]
    assert (ax.get_xlabel(), ax.get_xscale()) == ("coefficient", "log")
    assert ax.lines[0].get_xdata().tolist() == [0.0001, 0.1, 10]
    assert ax.lines[0].get_ydata().tolist() == pytest.approx([50.0001, 50.1, 60])


def test_labels_from_users_are_text_and_nothing_else():
    label = '<b>"x" & $y_1$'
    svg = style.inline_svg(figures.lines({label: figures.series([1, 2], [[1, 2]])}, title=label, xlabel=label), "f")
    root = ET.fromstring(svg)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count(label) == 3
    titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [f"{label}: accuracy 2 at the end"]


def test_inline_figures_share_a_page_without_sharing_names(comparison):
    page = "".join(style.inline_svg(plot.figure, f"f{i}") for i, plot in enumerate(plots(comparison)))
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', page)) <= set(ids)
    used = set(re.findall(r"var\((--[^)]+)\)", page))
    assert used
    assert used <= set(style.css_colours(dark=True))


def test_every_colour_can_be_read_on_its_page():
    for dark, background in ((False, style.LIGHT_PAGE), (True, style.DARK_PAGE)):
        for name, colour in style.css_colours(dark).items():
            if name != f"--c-{style.GRID[1:]}":
                least = 3.0 if colour in ("#2b83a8",) else 4.5
                assert style.contrast_ratio(colour, background) >= least, (name, colour)


def test_settings_of_matplotlib_stay_as_they_were(comparison):
    before = dict(mpl.rcParams)
    for plot in plots(comparison):
        style.png(plot.figure, dpi=30)
    assert dict(mpl.rcParams) == before


@given(st.lists(st.floats(0, 100), max_size=9))
def test_labels_are_kept_apart_and_inside(values):
    values = sorted(values)
    placed = _apart(values, gap=10, low=0, high=100)
    assert len(placed) == len(values)
    assert all(b - a >= 10 - 1e-9 for a, b in pairwise(placed))
    assert all(-1e-9 <= y <= 100 + 1e-9 for y in placed)
    if all(b - a >= 10 for a, b in pairwise(values)):
        assert placed == pytest.approx(values)


def test_stds_that_begin_at_zero_have_no_line_and_those_that_stay_there_no_figure():
    """As of Noisy K-FAC, which draws no noise before its first inversion."""
    run = make_result("BGD", 0.9)
    none = {"edges": [1e-8, 2e-8], "counts": [5], "smallest": 0.0, "largest": 0.0}
    late = [run.stds[0].model_copy(update=none), *run.stds[1:]]
    drawn = {plot.name: plot for plot in plots(compare([run.model_copy(update={"stds": late})]))}
    figure = drawn["stds-bgd"].figure
    assert not [text for text in figure.axes[0].texts if "initial std" in text.get_text()]
    assert figure.axes[0].get_xlim()[0] >= min(h.edges[0] for h in run.stds[1:])
    never = [h.model_copy(update=none) for h in run.stds]
    assert not [p for p in plots(compare([run.model_copy(update={"stds": never})])) if p.name.startswith("stds")]


def test_rows_that_look_alike_are_told_apart():
    rows = ("Laplace approximation, lambda = 1", "Laplace approximation, lambda = 10", "λ", "μ")
    drawn = {plot.name: plot for plot in plots(compare(make_result(row, 0.5 + i / 10) for i, row in enumerate(rows)))}
    curves = drawn["accuracy-by-task"].figure.axes[0].lines
    assert len({line.get_label() for line in curves}) == 4
    assert len({line.get_color() for line in curves}) == 4
    assert len([name for name in drawn if name.startswith("matrix")]) == 4


def test_a_task_that_comes_back_has_its_own_bar():
    run = make_result("BGD", 0.9)
    run.task_names[3] = run.task_names[0]
    (entry,) = compare([run]).entries.values()
    assert list(entry.tasks) == ["task 1", "task 2", "task 3", "task 1 (2)", "task 5"]
    assert [end.mean for end in entry.tasks.values()] == pytest.approx([100 * value for value in run.R[-1]])


def test_a_wide_spread_does_not_stretch_the_axis_beyond_all_and_nothing():
    left, right = figures.forest([("BGD", Summary(64.7, 48.2, 3), None)], title="t").axes[0].get_xlim()
    assert -5 < left < 20
    assert 100 <= right < 105


def test_the_lowest_band_of_the_paper_is_shown_whole_with_room_beside_it():
    rows = [("Adam", Summary(78.6, None, 1), Summary(74.1, 0.9, 10)), ("BGD", Summary(88.7, None, 1), None)]
    ax = figures.forest(rows, title="t").axes[0]
    (band,) = (bar for bar in ax.patches if bar.get_width())
    assert ax.get_xlim()[0] < band.get_x()
