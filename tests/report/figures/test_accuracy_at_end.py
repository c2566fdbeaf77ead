from bgd.report.figures.accuracy_at_end import draw_forest
from bgd.report.statistics import Summary


def test_forest_shows_ours_and_the_papers():
    rows = [
        ("A", Summary(50, 2, 3), Summary(51, 3, 10)),
        ("B", None, Summary(40, 1, 10)),
        ("C", Summary(9, None, 1), None),
    ]
    ax = draw_forest(rows, title="t").axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["A", "B", "C"]
    assert [(bar.get_x(), bar.get_width()) for bar in ax.patches] == [(48, 6), (39, 2)]
    assert len(ax.containers) == 2 + 2  # two bands, two dots


def test_a_wide_spread_does_not_stretch_the_axis_beyond_0_and_100():
    left, right = draw_forest([("BGD", Summary(64.7, 48.2, 3), None)], title="t").axes[0].get_xlim()
    assert -5 < left < 20
    assert 100 <= right < 105


def test_the_lowest_band_of_the_paper_is_shown_whole_with_room_beside_it():
    rows = [("Adam", Summary(78.6, None, 1), Summary(74.1, 0.9, 10)), ("BGD", Summary(88.7, None, 1), None)]
    ax = draw_forest(rows, title="t").axes[0]
    (band,) = (bar for bar in ax.patches if bar.get_width())
    assert ax.get_xlim()[0] < band.get_x()
