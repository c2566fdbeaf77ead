import numpy as np

from bgd.report.figures.matrix import draw_heat_map


def test_cells_without_a_value_stay_empty():
    ax = draw_heat_map([[0.9, np.nan], [0.5, 1.0]], title="t").axes[0]
    assert [text.get_text() for text in ax.texts] == ["90", "50", "100"]
