"""Creating learners: names, settings and needs are checked before anything is trained."""

from __future__ import annotations

import pytest
import torch

from bgd.methods import METHODS, Base, MethodError, create, settings_of
from bgd.scenarios import scenario
from bgd.scenarios.heads import Heads
from bgd.scenarios.types import Knowledge


def test_every_method_of_the_tables_is_registered():
    expected = ["sgd", "adam", "adagrad", "l2", "ewc", "online-ewc", "si", "mas", "lwf", "vcl", "bbb", "bgd", "offline"]
    assert set(expected) <= set(METHODS)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("ewk", {}, "no method 'ewk': did you mean 'ewc'"),
        ("zzz", {}, "no method 'zzz': choose one of sgd, adam"),
        ("ewc", {"coeficient": 1}, "'ewc' has no setting 'coeficient': did you mean 'coefficient'"),
        ("sgd", {"coefficient": 1}, "'sgd' has no setting 'coefficient': choose one of lr, momentum"),
        ("ewc", {"fisher_label": "argmax"}, "'argmax': choose one of predicted, true"),
        ("ewc", {"coefficient": -1}, "coefficient=-1"),
        ("ewc", {"coefficient": float("inf")}, "coefficient=inf"),
        ("mas", {"consolidate_every": 0}, "consolidate_every=0"),
        ("mas", {"consolidate_every": 1.5}, "consolidate_every=1.5"),
        ("si", {"damping": 0.0}, "damping=0.0: must be a finite number above 0"),
        ("si", {"damping": -0.1}, "damping=-0.1"),
        ("online-ewc", {"decay": -1.0}, "decay=-1.0"),
        ("online-ewc", {"decay": float("nan")}, "decay=nan"),
        ("bbb", {"train_size": 9, "kl_weight": -1.0}, "kl_weight=-1.0"),
        ("bbb", {"train_size": 9.5}, "train_size=9.5: must be a whole number from 1"),
        ("bbb", {"train_size": True}, "train_size=True: must be a whole number from 1"),
        ("laplace", {"train_size": 9, "prior_precision": float("inf")}, "prior_precision=inf"),
        ("vcl", {"train_size": 9, "train_samples": 1.5}, "train_samples=1.5: must be a whole number from 1"),
        ("bgd", {"test_samples": -1}, "test_samples=-1: must be a whole number from 0"),
        ("adam", {"lr": -1.0}, "-1"),
        ("l2", {"optimizer": "adamw"}, "'adamw': choose one of sgd, adam, adagrad"),
        ("vcl", {}, "VCL .*train_size"),
        ("bbb", {"train_size": 0}, "train_size=0"),
        ("bbb", {"train_size": 9, "std_init": 0.0}, "std_init=0.0"),
        ("bbb", {"train_size": 9, "sampling": "flipout"}, "'flipout': choose one of weights, local"),
        ("noisy-adam", {}, "NoisyAdam .*train_size"),
        ("noisy-adam", {"train_size": 9, "beta2": 1.0}, "beta2=1.0"),
        ("noisy-adam", {"train_size": 9, "kl_weight": -1.0}, "kl_weight=-1.0"),
        ("noisy-adam", {"train_size": 9, "prior_variance": 0.0}, "prior_variance=0.0"),
        ("noisy-adam", {"train_size": 9, "prior_variance": -1.0}, "prior_variance=-1.0"),
        ("noisy-adam", {"train_size": [9, 9]}, r"train_size=\[9, 9\]: NoisyAdam takes one number"),
        ("bbb", {"train_size": [9, 9]}, r"train_size=\[9, 9\]: BBB takes one number"),
        ("noisy-adam", {"train_size": 9, "kl_weight": 0.0, "damping": 0.0}, "set one of them above 0"),
        ("noisy-adam", {"train_size": 9, "std_init": 2.0}, "std_init=2.0: .* the std of the prior"),
        ("noisy-adam", {"train_size": 9, "fisher": "batch"}, "'batch': choose one of gradient, sample"),
        ("noisy-kfac", {}, "NoisyKFAC .*train_size"),
        ("noisy-kfac", {"train_size": 9, "prior_variance": -1.0}, "prior_variance=-1.0"),
        ("kfac", {"damping": -1.0}, "damping=-1.0"),
        ("kfac", {"decay": 1.0}, "decay=1.0"),
        ("kfac", {"stats_every": 0}, "stats_every=0"),
        ("kfac", {"inverse_every": 1.5}, "inverse_every=1.5"),
        ("kfac", {"fisher_label": "argmax"}, "'argmax': choose one of predicted, true"),
        ("kfac", {"kl_clip": 0.0}, "kl_clip=0.0"),
        ("kfac", {"weight_decay": -0.1}, "weight_decay=-0.1"),
        ("bgd", {"std_init": -1.0}, "std_init .* got -1"),
        ("lwf", {"temperature": 0}, "temperature=0"),
        ("lwf", {"distil_over": "new"}, "'new': choose one of old, seen"),
        ("sgd", {"loss_over": "some"}, "'some': choose one of all, task, seen, batch"),
        ("sgd", {"loss_over": "seen", "labels_trick": True}, "labels_trick=True means loss_over='batch'"),
    ],
)
def test_invalid_names_and_settings_are_rejected(name, settings, message, scenarios, heads_of, make_net):
    scenario = scenarios["domain"]
    with pytest.raises(ValueError, match=message):
        create(name, make_net(2), heads_of(scenario), scenario, **settings)


def test_an_unmet_need_names_scenario_need_and_alternatives(scenarios, heads_of, make_net):
    scenario = scenarios["continuous"]
    with pytest.raises(ValueError, match="BOUNDARIES") as error:
        create("online-ewc", make_net(2), heads_of(scenario), scenario)
    text = str(error.value)
    assert "'continuous task-agnostic' reveals NOTHING" in text
    assert "online-ewc with consolidate_every=1" in text
    assert "mas with consolidate_every=1" in text
    assert "sgd" in text
    assert "vcl" not in text
    assert "offline" not in text
    learner = create("online-ewc", make_net(2), heads_of(scenario), scenario, consolidate_every=1)
    assert learner.needs is Knowledge.NOTHING


@pytest.mark.parametrize(
    ("where", "over"), [("task", "task"), ("domain", "all"), ("class", "all"), ("discrete", "all")]
)
def test_the_loss_runs_over_the_task_head_only_where_testing_knows_it_too(where, over, scenarios, heads_of, make_net):
    scenario = scenarios[where]
    heads = heads_of(scenario)
    assert create("sgd", make_net(heads.outputs), heads, scenario).outputs.over == over
    trick = create("sgd", make_net(heads.outputs), heads, scenario, labels_trick=True)
    assert trick.outputs.over == "batch"


def test_settings_are_listed_with_their_defaults():
    assert settings_of("l2") == {"lr": 0.001, "coefficient": 0.5, "optimizer": "adam"}
    assert all("net" not in settings_of(n) and "outputs" not in settings_of(n) for n in METHODS)


def test_class_attributes_describe_the_methods():
    assert [n for n, m in METHODS.items() if m.joint] == ["offline"]
    assert [n for n, m in METHODS.items() if m.upper_bound] == ["offline"]
    assert [n for n, m in METHODS.items() if m.train_size_per_task] == ["laplace", "vcl"]


def test_state_attributes_must_be_set(monkeypatch):
    class Forgetful(Base):
        state_attributes = ("avrage",)

        def __init__(self, net, outputs, *, lr=0.01):
            super().__init__(net, outputs, torch.optim.SGD(net.parameters(), lr=lr))
            self.average = torch.zeros(1)

    monkeypatch.setitem(METHODS, "forgetful", Forgetful)
    with pytest.raises(MethodError, match="'forgetful' lists 'avrage' in state_attributes"):
        create("forgetful", torch.nn.Linear(4, 2), Heads(2, ((0, 1),)), scenario("domain"))
