from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bgd.report.figures.line_labels import spread_labels
from bgd.report.figures.lines import draw_lines, make_series


def test_an_axis_of_accuracies_has_a_smallest_range():
    curves = {"A": make_series([1, 2], [[90.0, 90.1]]), "B": make_series([1, 2], [[90.1, 90.0]])}
    low, high = draw_lines(curves, title="", xlabel="").axes[0].get_ylim()
    assert high - low == pytest.approx(4)
    assert (low + high) / 2 == pytest.approx(90.05)


def test_lines_of_one_colour_have_samples_beside_their_labels():
    few = {f"method {i}": make_series([1, 2], [[i, i]]) for i in range(3)}
    many = {f"method {i}": make_series([1, 2], [[i, i]]) for i in range(15)}
    assert len(draw_lines(few, title="t", xlabel="x").axes[0].lines) == 3
    ax = draw_lines(many, title="t", xlabel="x").axes[0]
    samples = ax.lines[15:]
    assert len(samples) == 15
    assert len({(line.get_color(), line.get_marker(), line.get_linestyle()) for line in samples}) == 15


@given(st.lists(st.floats(0, 100), max_size=9))
def test_labels_do_not_overlap_and_stay_inside(values):
    values = sorted(values)
    placed = spread_labels(values, gap=10, low=0, high=100)
    assert len(placed) == len(values)
    assert all(b - a >= 10 - 1e-9 for a, b in pairwise(placed))
    assert all(-1e-9 <= y <= 100 + 1e-9 for y in placed)
    if all(b - a >= 10 for a, b in pairwise(values)):
        assert placed == pytest.approx(values)
