from bgd.report.figures.each_task import draw_task_bars
from bgd.report.statistics import Summary


def test_bars_of_each_task_beside_the_papers_lines():
    ours = [Summary(80, 2, 3), Summary(60, None, 1)]
    figure = draw_task_bars([("BGD", ours, [82.5, 61]), ("SGD", ours[::-1], []), ("Adam", ours, [])], "ab", title="t")
    assert [panel.get_title(loc="left") for panel in figure.axes if panel.axison] == ["BGD", "SGD", "Adam"]
    bgd, sgd = figure.axes[:2]
    assert [bar.get_height() for bar in bgd.patches] == [80, 60]
    assert [bar.get_height() for bar in sgd.patches] == [60, 80]
    assert [line.get_ydata()[0] for line in bgd.lines if len(set(line.get_ydata())) == 1][-2:] == [82.5, 61]
    assert len(figure.legends) == 1
    assert not draw_task_bars([("BGD", ours, [])], "ab", title="t").legends


def test_long_names_that_begin_alike_stay_distinct():
    ours = [Summary(90.0, None, 1)] * 3
    tasks = ["unpermuted", "permutation 1", "permutation 12"]
    panel = draw_task_bars([("BGD", ours, ())], tasks, title="t").axes[0]
    assert len({text.get_text() for text in panel.get_xticklabels()}) == 3
