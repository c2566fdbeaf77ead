import xml.etree.ElementTree as ET

import numpy as np
import pytest

from bgd.report.figures.lines import draw_lines, make_series
from bgd.report.figures.save import inline_svg, svg


def test_lines_have_title_labels_bands_and_ends():
    curves = {
        "BGD": make_series([1, 2, 3], [[90, 89, 88], [92, 91, 90]]),
        "SGD": make_series([1, 2, 3], [[90, 80, 70]]),
    }
    figure = draw_lines(curves, title="Average accuracy", xlabel="number of tasks", whole_x=True)
    ax = figure.axes[0]
    assert figure.get_suptitle() == "Average accuracy"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("number of tasks", "accuracy, %")
    assert [line.get_label() for line in ax.lines] == ["BGD", "SGD"]
    assert ax.lines[0].get_ydata().tolist() == [91, 90, 89]
    assert len(ax.collections) == 1  # one seed has no band
    assert {text.get_text() for text in ax.texts} == {"BGD", "SGD"}


def test_band_is_one_spread():
    ax = draw_lines({"BGD": make_series([0, 1], [[90, 90], [92, 92]])}, title="", xlabel="").axes[0]
    y = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (y.min(), y.max()) == (pytest.approx(91 - 2**0.5), pytest.approx(91 + 2**0.5))


def test_bands_of_accuracies_stay_within_0_and_100():
    wide = make_series([1, 2], [[9.0, 9.0], [93.0, 92.0], [92.0, 93.0]])
    ax = draw_lines({"K = 10": wide}, title="t", xlabel="tasks").axes[0]
    (band,) = ax.collections
    heights = np.concatenate([path.vertices[:, 1] for path in band.get_paths()])
    assert heights.max() <= 100
    assert heights.min() >= 0


def test_labels_are_escaped():
    label = '<b>"x" & $y_1$'
    drawn = svg(draw_lines({label: make_series([1, 2], [[1, 2]])}, title=label, xlabel=label))
    root = ET.fromstring(inline_svg(drawn, "f"))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count(label) == 3
    titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [f"{label}: accuracy 2 at the end"]
