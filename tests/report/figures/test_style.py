from itertools import combinations

import numpy as np
import pytest
from made_runs import make_result
from matplotlib.colors import to_rgb

from bgd.report.figures import style
from bgd.report.figures.catalog import draw_plots
from bgd.report.figures.labels import looks_of
from bgd.report.figures.save import css_colours
from bgd.report.summary import compare


def test_every_colour_can_be_read_on_its_page():
    for dark, background in ((False, style.LIGHT_PAGE), (True, style.DARK_PAGE)):
        for name, colour in css_colours(dark).items():
            if name != f"--c-{style.GRID[1:]}":
                assert style.contrast_ratio(colour, background) >= 4.5, (name, colour)


# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as people without one kind of cone see it
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def to_lab(colour, vision):
    rgb = np.array(to_rgb(colour))
    linear = np.clip(np.array(vision) @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4), 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ linear / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("dark", [False, True])
def test_colours_are_distinct_with_any_colour_vision(vision, dark):
    colours = [style.DARK_COLOURS[colour] if dark else colour for colour in style.COLOURS]
    for a, b in combinations(colours, 2):
        assert np.linalg.norm(to_lab(a, VISION[vision]) - to_lab(b, VISION[vision])) >= 10, (a, b)


def test_the_first_looks_share_no_colour_and_all_differ_in_colour_and_marker():
    looks = list(style.assign_looks([f"row {i}" for i in range(60)]).values())
    assert len({look.colour for look in looks[:12]}) == len({look.marker for look in looks[:13]}) - 1 == 12
    assert len({(look.colour, look.marker) for look in looks}) == 60
    assert style.UPPER_BOUND.colour not in {look.colour for look in looks}


def test_the_highlighted_row_is_first_and_alone_emphasised():
    looks = style.assign_looks(["Adam", "BGD", "SGD"], highlight="BGD")
    assert [look.emphasised for look in looks.values()] == [False, True, False]
    assert looks["BGD"].colour == style.COLOURS[0]
    assert [looks["Adam"].colour, looks["SGD"].colour] == list(style.COLOURS[1:3])


def test_looks_depend_on_the_order_of_the_rows_and_never_on_their_names(results, experiment):
    comparison = compare(results, experiment)
    looks = looks_of(comparison)
    assert list(looks) == ["BGD", "SGD", "Offline"]
    assert looks["Offline"] == style.UPPER_BOUND
    chosen = looks_of(compare(results, experiment.model_copy(update={"highlight": "SGD"})))
    assert chosen["SGD"] == looks["BGD"]
    renamed = compare([make_result(row, 0.9) for row in ("one", "two")])
    assert [look.colour for look in looks_of(renamed).values()] == list(style.COLOURS[:2])
    assert not any(look.emphasised for look in looks_of(renamed).values())  # no declaration: no order of its own


def test_a_row_has_the_same_look_in_all_figures(comparison):
    """Whether or not the rows before it are drawn: Adam has no result, and is in no figure but the first."""
    plots = {plot.name: plot.figure.axes[0] for plot in draw_plots(comparison)}
    for row, look in looks_of(comparison).items():
        for name in ("accuracy-by-task", "learning-curves", "training-loss"):
            for line in plots[name].lines:
                if line.get_label() == row:
                    assert (line.get_color(), line.get_linestyle()) == (look.colour, look.dash), (row, name)
    for texts in (plots["accuracy-by-task"].texts, plots["results"].get_yticklabels()):
        weights = {text.get_text(): text.get_weight() for text in texts if text.get_text() != "Adam"}
        assert weights == {"BGD": "bold", "SGD": "normal", "Offline": "normal"}


def test_training_curves_share_the_colour_of_their_row():
    look = style.assign_looks(["BGD"])["BGD"]
    assert look.secondary.colour == look.colour
    assert look.secondary not in style.assign_looks([f"row {i}" for i in range(60)]).values()
