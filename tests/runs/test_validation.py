"""What cannot run is refused before anything starts."""

import pytest
import torch
from small_runs import DRIFTING, small

from bgd.runs import RunConfig, RunError, run
from bgd.runs.validation import prepare_data, validate


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "bdg"}, "did you mean 'bgd'"),
        ({"settings": {"std_int": 1}}, "did you mean 'std_init'"),
        ({"settings": {"std_init": -1.0}}, "std_init"),
        ({"settings": {"lr": "fast"}}, "fast"),
        ({"settings": {"test_samples": 4}}, "test.inference"),
        ({"method": "ewc", "settings": {"fisher_over": "batches"}}, "choose one of sample, batch"),
        ({"method": "online-ewc", "settings": {"fisher_over": "batch", "fisher_label": "exact"}}, "per sample"),
        ({"method": "mas", "settings": {"importance_over": "Sample"}}, "choose one of sample, batch"),
        (
            {"setup": {"scenario": "continuous task-agnostic"}},
            "needs a stream of kind continuous, drifting or prequential",
        ),
        ({"setup": {"scenario": "tasks"}}, "choose one of task, domain"),
        ({"method": "ewc", "setup": {"scenario": "discrete task-agnostic"}}, "needs BOUNDARIES"),
        ({"setup": {"tasks": {"kind": "rotate"}}}, "tasks.degrees is empty"),
        ({"setup": {"loss": "crossentropy"}}, "no loss 'crossentropy'"),
        ({"setup": {"net": {"name": "no_such_module:build"}}}, "cannot import no_such_module"),
        ({"method": "no_such_module:Method"}, "cannot import no_such_module"),
        ({"device": "abacus"}, "device 'abacus' cannot be used here"),
        pytest.param(
            {"device": "cuda"},
            "device 'cuda' cannot be used here",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
    ],
)
def test_invalid_settings_are_rejected(changes, message, tmp_path):
    config = RunConfig(**{"method": "bgd", "row": "Mine", **changes})
    with pytest.raises(RunError, match=message) as caught:
        validate(config)
    assert str(caught.value).startswith("Mine, seed 0: ")
    with pytest.raises(RunError):
        run(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_drift_can_be_augmented():
    validate(small("sgd", DRIFTING | {"augment": {"crop": 1}}, "continuous task-agnostic"))


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        ({"tasks": {"kind": "mix"}}, "tasks.kind is 'mix', but data.mix is empty"),
        ({"data": {"mix": [{"name": "digits"}]}}, "data.mix lists 1 data sets, but tasks.kind is 'permute'"),
        (
            {
                "data": {"mix": [{"name": "digits"}]},
                "tasks": {"kind": "mix"},
                "scenario": "continuous task-agnostic",
                "stream": {"kind": "drifting"},
            },
            "a drifting stream takes one data set",
        ),
        ({"stream": {"augment": {"crop": 4}}}, "permuted pixels have no neighbours"),
    ],
)
def test_settings_that_contradict_each_other_are_rejected(setup, message):
    with pytest.raises(RunError, match=message):
        validate(RunConfig(method="sgd", setup=setup))


def test_data_is_prepared_once_for_each_setup(monkeypatch):
    built = []
    monkeypatch.setattr("bgd.runs.validation.build_net", lambda *arguments: built.append(arguments))
    configs = [RunConfig(method=method, seed=seed) for method in ("sgd", "adam") for seed in (1, 2)]
    prepare_data([*configs, RunConfig(method="sgd", setup={"data": {"pad": 1}})])
    assert [inputs for _, inputs, _, _ in built] == [(1, 8, 8), (1, 10, 10)]
