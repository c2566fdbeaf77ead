from made_runs import make_config, make_result

from bgd.experiments.declaration import Row
from bgd.experiments.layers import resolve
from bgd.report.statistics import Verdict
from bgd.report.summary import compare
from bgd.report.summary.paper import differences, reference_run
from bgd.report.tables.render import to_text
from bgd.report.tables.results import detail


def _changed(**stream):
    setup = make_config("BGD").setup.model_dump()
    return setup | {"stream": setup["stream"] | stream}


def test_runs_of_another_scale_have_no_verdict(experiment):
    shorter = make_result("BGD", 0.92, setup=_changed(iterations=999))
    otherwise = make_result("BGD", 0.92, settings={"std_init": 0.06, "mc_samples": 2})
    stand_in = make_result("BGD", 0.92).model_copy(update={"data_note": "made from the test images alone"})
    named = ("stream.iterations 999 instead of 1000", "mc_samples 2 instead of 10", "made from the test images alone")
    for run, deviation in zip((shorter, otherwise, stand_in), named, strict=True):
        made = compare([run], experiment)
        assert made.entries["BGD", "accuracy"].verdict is Verdict.UNKNOWN
        assert made.entries["BGD", "accuracy"].deviations == (deviation,)
        assert made.entries["BGD", "accuracy"].gap is None
        assert "not the paper's runs" in to_text(detail(made))


def test_the_name_of_the_preset_does_not_matter(experiment):
    setup = make_config("BGD").setup.model_dump() | {"test": {"evaluations": 7}}
    run = make_result("BGD", 0.92, preset="long", setup=setup)
    assert compare([run], experiment).entries["BGD", "accuracy"].verdict is Verdict.AGREES


def test_how_steps_are_computed_does_not_matter(experiment):
    config = make_config("BGD")
    setup = config.setup.model_dump() | {"net": config.setup.net.model_dump() | {"precision": "bfloat16"}}
    run = make_result("BGD", 0.92, setup=setup, settings=config.settings | {"chunk_size": 2, "noise": "hash"})
    assert compare([run], experiment).entries["BGD", "accuracy"].verdict is Verdict.AGREES


def test_more_evaluations_do_not_matter(experiment):
    setup = make_config("BGD").setup.model_dump()
    setup["test"] |= {"curve": 50, "stds": 5, "train": 100}
    assert compare([make_result("BGD", 0.92, setup=setup)], experiment).entries["BGD", "accuracy"].comparable


def test_a_setting_of_computation_belongs_to_its_method(experiment):
    for method in ("sgd", "no_such_module:Mine"):  # the report does not import it
        declared = experiment.model_copy(update={"rows": {"Mine": Row(method=method, settings={"lr": 0.1})}})
        config = resolve(declared, next(iter(declared.presets)), "Mine", "accuracy", 2019)
        reference = reference_run(config, declared)
        assert reference is not None
        assert not differences(config, reference)
        other = config.model_copy(update={"settings": config.settings | {"noise": "hash"}})
        assert differences(other, reference) == ["noise hash instead of the default"]


def test_a_setting_that_came_after_the_run_is_no_difference(experiment):
    row = experiment.rows["BGD"]
    newer = row.model_copy(update={"settings": {**row.settings, "estimator": "shared"}})
    declared = experiment.model_copy(update={"rows": {**experiment.rows, "BGD": newer}})
    run = make_result("BGD", 0.92)
    known = run.machine.model_copy(update={"settings": {**run.config.settings, "lr": 1.0}})
    assert compare([run], declared).entries["BGD", "accuracy"].deviations  # of this run nothing is known
    old = run.model_copy(update={"machine": known})
    assert compare([old], declared).entries["BGD", "accuracy"].comparable
    other = known.model_copy(update={"settings": {**known.settings, "estimator": "one pass"}})
    new = run.model_copy(update={"machine": other})
    assert not compare([new], declared).entries["BGD", "accuracy"].comparable


def test_a_smoke_test_is_never_beside_the_papers_accuracy(experiment):
    made = compare([make_result("BGD", 0.92, setup=_changed(iterations=99))], experiment)
    entry = made.entries["BGD", "accuracy"]
    assert (str(entry.scale), entry.paper, entry.gap, made.has_paper) == ("smoke", None, None, False)
    assert "92.00 ± 1.00" not in to_text(detail(made))
