"""Which figures are drawn, and what all of them share."""

import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
from made_runs import TASKS, make_result

from bgd.report.figures.catalog import draw_plots
from bgd.report.figures.save import css_colours, inline_svg, png, svg
from bgd.report.summary import compare


def captions(runs, experiment=None) -> dict[str, str]:
    return {plot.name: plot.caption for plot in draw_plots(compare(runs, experiment))}


def test_every_kind_of_figure_is_drawn(comparison):
    drawn = draw_plots(comparison)
    names = [plot.name for plot in drawn]
    assert names == [
        "results",
        "accuracy-by-task",
        "each-task",
        "schedule",
        "stds",
        "learning-curves",
        "training-loss",
        "matrix",
    ]
    by_name = dict(zip(names, drawn, strict=True))
    assert len(by_name["accuracy-by-task"].figure.axes[0].lines) == 3
    assert len(by_name["schedule"].figure.axes[0].lines) == 2 * TASKS
    assert len(by_name["stds"].figure.axes[0].get_yticklabels()) == TASKS
    assert "BGD 92.00 ± 1.00, paper 92.00 ± 1.00" in by_name["results"].alt
    for plot in drawn:
        assert plot.caption
        assert plot.alt
        assert png(plot.figure) == png(plot.figure)
        assert svg(plot.figure) == svg(plot.figure)
        ET.fromstring(inline_svg(svg(plot.figure), plot.name))


def test_the_declaration_selects(results, experiment):
    chosen = experiment.model_copy(update={"figures": ("schedule",)})
    assert [plot.name for plot in draw_plots(compare(results, chosen))] == ["results", "schedule"]


def test_rows_of_different_seeds_are_named_in_every_caption_that_compares_them():
    runs = [make_result("BGD", 0.9, 2020), make_result("SGD", 0.8, 2019), make_result("K = 2, capped", 0.7, 2019)]
    found = captions(runs)
    for name in ("accuracy-by-task", "learning-curves", "training-loss", "each-task"):
        assert "Seeds differ: 2020 (BGD), 2019 (K = 2, capped; SGD)." in found[name], name


def test_rows_of_the_same_seeds_are_not_named():
    runs = [make_result(row, 0.9, seed) for row in ("BGD", "SGD") for seed in (2019, 2020)]
    assert not [caption for caption in captions(runs).values() if "Seeds differ" in caption]


def test_rows_with_the_same_short_name_stay_distinct():
    rows = ("Laplace approximation, lambda = 1", "Laplace approximation, lambda = 10", "λ", "μ")
    drawn = {
        plot.name: plot for plot in draw_plots(compare(make_result(row, 0.5 + i / 10) for i, row in enumerate(rows)))
    }
    curves = drawn["accuracy-by-task"].figure.axes[0].lines
    assert len({line.get_label() for line in curves}) == 4
    assert len({line.get_color() for line in curves}) == 4
    labels = [text.get_text() for text in drawn["matrix"].figure.axes[0].texts]
    assert {"λ", "μ"} <= set(labels)


def test_settings_of_matplotlib_stay_as_they_were(comparison):
    before = dict(mpl.rcParams)
    for plot in draw_plots(comparison):
        png(plot.figure, dpi=30)
    assert dict(mpl.rcParams) == before


def test_ids_of_inline_figures_are_unique_on_a_page(comparison):
    page = "".join(inline_svg(svg(plot.figure), f"f{i}") for i, plot in enumerate(draw_plots(comparison)))
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', page)) <= set(ids)
    used = set(re.findall(r"var\((--[^)]+)\)", page))
    assert used
    assert used <= set(css_colours(dark=True))


def test_names_of_figures_have_no_ordinals_and_stay_when_a_setting_is_added():
    columns = ["class learning", "+ labels trick", "λ", "μ"]
    runs = [make_result(row, 0.9, column=column) for row in ("BGD", "SGD") for column in columns]
    few = [run for run in runs if run.config.column in columns[1:3]]
    more, less = ({plot.name for plot in draw_plots(compare(made))} for made in (runs, few))
    assert "matrix-class-learning" in more
    assert {name for name in less if "λ" not in name and "matrix" in name} - more <= {
        name for name in less if not name.endswith("labels-trick")
    }
    assert len(more) == len(draw_plots(compare(runs)))
    assert not [name for name in more if re.search(r"-\d{1,2}(-|$)", name)]
