import numpy as np

from bgd.report.figures.matrix import draw_heat_maps


def test_cells_without_a_value_stay_empty():
    ax = draw_heat_maps([("BGD", [[0.9, np.nan], [0.5, 1.0]])], title="t").axes[0]
    assert [text.get_text() for text in ax.texts] == ["BGD", "90", "50", "100"]


def test_panels_neither_overlap_nor_leave_the_figure():
    panels = [(f"method {i}", np.full((5, 5), i / 20)) for i in range(19)]
    figure = draw_heat_maps(
        panels, title="A long title that needs more than a single line of the figure: class learning"
    )
    width, height = figure.get_size_inches()
    boxes = [image.get_extent() for image in figure.axes[0].images]
    assert len({(left, top) for left, _, _, top in boxes}) == 19
    for left, right, bottom, top in boxes:
        assert 0 < left < right < width
        assert 0.4 < top < bottom < height
    assert max(right - left for left, right, _, _ in boxes) < min(
        b[0] - a[0] for a in boxes for b in boxes if b[0] > a[0]
    )
