from made_runs import make_result

from bgd.report.summary import compare
from bgd.report.summary.settings import split_settings, split_shared


def test_settings_without_effect_are_not_shown():
    same, _ = split_settings(compare([make_result("SGD", 0.9)]))
    assert {"stream.iterations", "stream.beta", "tasks.count", "net.widths"} <= set(same)
    assert not {"stream.epochs", "stream.start", "stream.moments", "tasks.degrees", "data.mix"} & set(same)


def test_settings_are_shown_with_the_defaults_that_the_method_had():
    run = make_result("SGD", 0.8)
    machine = run.machine.model_copy(update={"settings": {"lr": 0.01, "momentum": 0.9}})
    same, _ = split_settings(compare([run.model_copy(update={"machine": machine})]))
    assert (same["lr"], same["momentum"]) == (0.01, 0.9)


def test_split_shared():
    same, rest = split_shared({"a": {"x": {"y": 1, "z": 2}}, "b": {"x": {"y": 1, "z": 3}, "w": None}})
    assert same == {"x.y": 1}
    assert rest == {"a": {"x.z": 2}, "b": {"x.z": 3, "w": None}}
    assert split_shared({}) == ({}, {})
