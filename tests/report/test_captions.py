"""A figure or table says what it would otherwise hide: other seeds, rows that are not there, what lies off the axis."""

from __future__ import annotations

import math

import numpy as np
from made_runs import make_result

from bgd.experiments.declaration import Preset
from bgd.report.figures import drawing as figures
from bgd.report.figures.catalog import plots
from bgd.report.notes import caveats
from bgd.report.statistics import Summary
from bgd.report.summary import compare, settings
from bgd.runs.result import CurvePoint


def captions(runs, experiment=None) -> dict[str, str]:
    return {plot.name: plot.caption for plot in plots(compare(runs, experiment))}


def test_rows_of_different_seeds_are_named_in_every_caption_that_compares_them():
    runs = [make_result("BGD", 0.9, 2020), make_result("SGD", 0.8, 2019), make_result("K = 2, capped", 0.7, 2019)]
    said = captions(runs)
    for name in ("accuracy-by-task", "learning-curves", "training-loss", "each-task"):
        assert "Seeds differ: 2020 (BGD), 2019 (K = 2, capped; SGD)." in said[name], name


def test_rows_of_the_same_seeds_need_no_such_words():
    runs = [make_result(row, 0.9, seed) for row in ("BGD", "SGD") for seed in (2019, 2020)]
    assert not [caption for caption in captions(runs).values() if "Seeds differ" in caption]


def test_what_was_declared_and_never_begun_is_said(experiment):
    declared = experiment.model_copy(update={"presets": {"paper": Preset(about="all of it")}})
    runs = [make_result(row, 0.9) for row in ("BGD", "SGD")]
    assert caveats(compare(runs, declared)) == ["Declared and not run: Adam; Offline"]
    everything = [make_result(row, 0.9) for row in declared.rows]
    assert caveats(compare(everything, declared)) == []


def test_a_row_that_lacks_a_column_is_said_with_it(experiment):
    setup = experiment.setup
    declared = experiment.model_copy(
        update={"presets": {"paper": Preset(about="all of it")}, "columns": {"short": setup, "long": setup}}
    )
    runs = [make_result(row, 0.9, column="short") for row in declared.rows]
    runs += [make_result(row, 0.9, column="long") for row in declared.rows if row != "Adam"]
    assert caveats(compare(runs, declared)) == ["Declared and not run: Adam (long)"]


def test_a_loss_that_is_not_finite_or_leaves_the_axis_is_named():
    calm, lost, jumping = (make_result(row, 0.9) for row in ("SGD", "K = 1", "K-FAC"))
    lost.curve[:] = [CurvePoint(iteration=p.iteration, loss=math.nan) for p in lost.curve]
    jumping.curve[50] = CurvePoint(iteration=jumping.curve[50].iteration, loss=1e9)
    (plot,) = (plot for plot in plots(compare([calm, lost, jumping])) if plot.name == "training-loss")
    assert "Nowhere finite, and not drawn: K = 1." in plot.caption
    assert "Beyond the axis at times: K-FAC." in plot.caption
    assert plot.figure.axes[0].get_ylim()[1] < 10


def test_stds_beyond_the_histogram_are_said_to_be_at_its_ends():
    run = make_result("BGD", 0.9)
    name = "stds-bgd"
    assert "beyond the axis" not in captions([run])[name]
    run.stds[-1] = run.stds[-1].model_copy(update={"largest": 2e3})
    assert "What lies beyond the axis is at its ends." in captions([run])[name]


def test_a_band_of_accuracies_stays_within_what_there_is():
    wide = figures.series([1, 2], [[9.0, 9.0], [93.0, 92.0], [92.0, 93.0]])
    ax = figures.lines({"K = 10": wide}, title="t", xlabel="tasks").axes[0]
    (band,) = ax.collections
    heights = np.concatenate([path.vertices[:, 1] for path in band.get_paths()])
    assert heights.max() <= 100
    assert heights.min() >= 0


def test_lines_of_one_colour_are_told_apart_beside_their_labels():
    few = {f"method {i}": figures.series([1, 2], [[i, i]]) for i in range(3)}
    many = {f"method {i}": figures.series([1, 2], [[i, i]]) for i in range(15)}
    assert len(figures.lines(few, title="t", xlabel="x").axes[0].lines) == 3
    ax = figures.lines(many, title="t", xlabel="x").axes[0]
    samples = ax.lines[15:]
    assert len(samples) == 15
    assert len({(line.get_color(), line.get_marker(), line.get_linestyle()) for line in samples}) == 15


def test_settings_are_shown_with_the_defaults_that_the_method_had():
    run = make_result("SGD", 0.8)
    machine = run.machine.model_copy(update={"settings": {"lr": 0.01, "momentum": 0.9}})
    same, _ = settings(compare([run.model_copy(update={"machine": machine})]))
    assert (same["lr"], same["momentum"]) == (0.01, 0.9)


def test_names_that_begin_alike_are_told_apart():
    ours = [Summary(90.0, None, 1)] * 3
    tasks = ["unpermuted", "permutation 1", "permutation 12"]
    panel = figures.task_bars([("BGD", ours, ())], tasks, title="t").axes[0]
    assert len({text.get_text() for text in panel.get_xticklabels()}) == 3
