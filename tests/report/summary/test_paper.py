from made_runs import make_config, make_result

from bgd.experiments.declaration import Row
from bgd.experiments.layers import resolve
from bgd.report.statistics import Verdict
from bgd.report.summary import compare
from bgd.report.summary.paper import is_at_paper_scale
from bgd.report.tables.render import to_text
from bgd.report.tables.results import detail


def _changed(**stream):
    setup = make_config("BGD").setup.model_dump()
    return setup | {"stream": setup["stream"] | stream}


def test_runs_of_another_scale_have_no_verdict(experiment):
    shorter = make_result("BGD", 0.92, setup=_changed(iterations=999))
    otherwise = make_result("BGD", 0.92, settings={"std_init": 0.06, "mc_samples": 2})
    stand_in = make_result("BGD", 0.92).model_copy(update={"data_note": "made from the test images alone"})
    for run in (shorter, otherwise, stand_in):
        made = compare([run], experiment)
        assert made.entries["BGD", "accuracy"].verdict is Verdict.UNKNOWN
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
        assert is_at_paper_scale(config, declared)
        other = config.model_copy(update={"settings": config.settings | {"noise": "hash"}})
        assert not is_at_paper_scale(other, declared)
