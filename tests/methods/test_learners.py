"""The contract of every registered learner: it runs where its needs are met, and resumes exactly."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch import nn

from bgd.methods import METHODS, Gaussian, Learner, MethodError, Outputs, create
from bgd.scenarios.heads import Heads
from bgd.scenarios.types import Knowledge

# Settings without a default; and variants with additional state
SHARED: dict[str, Any] = {"estimator": "shared", "max_move": None, "boost": None}
REQUIRED: dict[str, dict[str, Any]] = {
    "vcl": {"train_size": 96},
    "laplace": {"train_size": 96},
    "bbb": {"train_size": 96, "std_init": 0.3},
    "noisy-adam": {"train_size": 96},
    "noisy-kfac": {"train_size": 96},
    "exact-head": {"units": 30},
    "foo-vb": {"mc_samples": 4, "antithetic": True},
}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, REQUIRED.get(name, {})) for name in METHODS),
    ("sgd", {"momentum": 0.9}),
    ("ewc", {"fisher_label": "sampled"}),
    ("online-ewc", {"fisher_label": "sampled", "decay": 0.9}),
    ("online-ewc", {"consolidate_every": 1, "optimizer": "sgd", "coefficient": 0.1, "proximal": False}),
    ("online-ewc", {"consolidate_every": 3}),
    ("mas", {"consolidate_every": 2, "coefficient": 0.01}),
    ("lwf", {"balance": True, "distil_over": "seen"}),
    ("laplace", {"train_size": [96, 80], "kind": "ptl", "curvature": "diagonal", "optimizer": "sgd", "lr": 0.1}),
    ("laplace", {"train_size": 96, "kind": "ptl", "prior_precision": 1.0}),
    ("laplace", {"train_size": 96, "kind": "al", "memory": 20}),
    ("laplace", {"train_size": 96, "kind": "al", "curvature": "diagonal", "memory": None, "fisher_label": "exact"}),
    ("vcl", {"train_size": [96, 80], "sampling": "local", "test_samples": 2}),
    ("bgd", SHARED | {"std_init": 0.2, "mc_samples": 4, "batched": False, "antithetic": True, "test_samples": 3}),
    ("bgd", SHARED | {"std_init": 0.2, "mc_samples": 2, "std_max": "init", "noise": "hash"}),
    ("bgd", {"mc_samples": 2, "noise": "torch"}),
    ("bgd", SHARED | {"std_init": 0.2, "mc_samples": 2, "std_max": "init", "memory": 2000}),
    ("continual-backprop", {"replacement_rate": 0.02, "maturity": 5}),
    ("bong", {"std_init": 0.3, "curvature": "fisher", "estimator": "shared", "mc_samples": 2, "process_noise": 1e-4}),
    ("ivon", {"estimator": "shared", "mc_samples": 2, "test_samples": 2}),
    ("bbb", {"train_size": 96, "sampling": "local", "train_samples": 2, "prior_std": 1.0}),
    ("kfac", {"stats_every": 2, "inverse_every": 3, "weight_decay": 0.001, "fisher_label": "true"}),
    ("noisy-kfac", {"train_size": 96, "stats_every": 2, "inverse_every": 4, "kl_weight": 0.1, "test_samples": 2}),
    ("noisy-adam", {"train_size": 96, "kl_weight": 0.1, "fisher": "sample", "test_samples": 2}),
    ("exact-head", {"features": "relu", "units": 30, "precision": "float64"}),
    ("exact-head", {"features": "identity", "discount": 0.99, "ridge": 1.0}),
    ("exact-head", {"features": "trained"}),
]
IDS = [f"{n}-{'-'.join(f'{k}={v}' for k, v in s.items())}" for n, s in VARIANTS]


def train(learner: Learner, batches, ends=True) -> list[float]:
    losses = [learner.observe(*b) for b in batches]
    if ends:
        learner.end_task(iter(batches))  # one pass only, as in a run
    return losses


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=IDS)
@pytest.mark.parametrize("where", ["task", "class"])
@pytest.mark.parametrize("labels_trick", [False, True])
def test_saved_and_restored_mid_task_it_continues_bit_for_bit(
    name, settings, where, labels_trick, scenarios, heads_of, make_net, make_batches
):
    scenario = scenarios[where]

    def fresh() -> Learner:
        return create(name, make_net(6), heads_of(scenario), scenario, labels_trick=labels_trick, **settings)

    first, second = make_batches(0, scenario), make_batches(1, scenario)
    whole = fresh()
    train(whole, first)
    for b in second[:3]:
        whole.observe(*b)
    file = io.BytesIO()
    torch.save(whole.state_dict(), file)
    file.seek(0)
    resumed = fresh()
    for b in make_batches(2, scenario, n=2):  # a different state, which must be overwritten
        resumed.observe(*b)
    resumed.load_state_dict(torch.load(file, weights_only=True))

    of_whole, of_resumed = (
        train(learner, second[3:]) + train(learner, make_batches(2, scenario)) for learner in (whole, resumed)
    )
    assert of_whole == of_resumed
    assert same(whole.state_dict(), resumed.state_dict())
    x = second[0].x
    assert torch.equal(whole.predict(x, 1), resumed.predict(x, 1))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=IDS)
def test_a_state_is_a_snapshot_that_later_training_does_not_change(
    name, settings, scenarios, heads_of, make_net, make_batches
):
    scenario = scenarios["task"]
    learner = create(name, make_net(6), heads_of(scenario), scenario, **settings)
    train(learner, make_batches(0, scenario))
    state = learner.state_dict()
    file = io.BytesIO()
    torch.save(state, file)
    train(learner, make_batches(1, scenario))
    file.seek(0)
    assert same(state, torch.load(file, weights_only=True))
    other = create(name, make_net(6), heads_of(scenario), scenario, **settings)
    other.load_state_dict(state)
    train(other, make_batches(1, scenario))
    file.seek(0)
    assert same(state, torch.load(file, weights_only=True))  # nor does that of a learner it was loaded into


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=IDS)
@pytest.mark.parametrize("where", ["task", "domain", "class", "discrete", "continuous"])
@pytest.mark.parametrize("labels_trick", [False, True])
def test_learns_three_tasks_wherever_its_needs_are_met(
    name, settings, where, labels_trick, scenarios, heads_of, make_net, make_batches
):
    scenario, heads = scenarios[where], heads_of(scenarios[where])

    def make() -> Learner:
        return create(name, make_net(heads.outputs), heads, scenario, labels_trick=labels_trick, **settings)

    if METHODS[name].needs > scenario.reveals and "consolidate_every" not in settings:
        with pytest.raises(ValueError, match=rf"'{name}' needs BOUNDARIES, .*'{scenario.name}' reveals NOTHING"):
            make()
        return
    learner = make()
    for t in range(3):
        losses = train(learner, make_batches(t, scenario), ends=scenario.reveals >= Knowledge.BOUNDARIES)
        assert all(torch.isfinite(torch.tensor(losses)))
    x = make_batches(1, scenario)[0].x
    scores = learner.predict(x, 1 if scenario.task_in_testing else None)
    outside = torch.ones(heads.outputs, dtype=torch.bool)
    outside[list(heads.tasks[1])] = False
    assert scores.shape == (len(x), heads.outputs)
    if scenario.task_in_testing:
        assert scores[:, outside].eq(-torch.inf).all()
        assert scores[:, ~outside].isfinite().all()
    else:
        assert scores.isfinite().all()


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=IDS)
def test_predicting_changes_nothing(name, settings, scenarios, heads_of, make_net, make_batches):
    scenario = scenarios["domain"]
    batches = make_batches(0, scenario)

    def run(predict: bool) -> list[float]:
        learner = create(name, make_net(2), heads_of(scenario), scenario, **settings)
        losses = []
        for b in batches:
            losses.append(learner.observe(*b))
            if predict:
                assert torch.equal(learner.predict(b.x), learner.predict(b.x))
        return losses

    assert run(True) == run(False)


@pytest.mark.parametrize("name", METHODS)
def test_a_layer_in_evaluation_mode_stays_in_it(name, scenarios, heads_of, make_net, make_batches):
    """Frozen statistics, or a dropout that is off: neither predicting nor the end of a task turns it on again."""
    scenario = scenarios["domain"]
    batches = make_batches(0, scenario)
    net = make_net(2, dropout=0.5)
    net[3].eval()
    learner = create(name, net, heads_of(scenario), scenario, **REQUIRED.get(name, {}))
    train(learner, batches)
    learner.predict(batches[0].x)
    learner.observe(*batches[0])
    assert not net[3].training
    assert net.training


@pytest.mark.parametrize("name", ["ewc", "online-ewc", "mas", "lwf", "laplace"])
def test_a_task_that_ends_before_its_labels_were_seen_is_rejected(name, scenarios, heads_of, make_net, make_batches):
    """Which outputs matter follows from the labels seen: without any, nothing would be protected, or all be NaN."""
    scenario = scenarios["class"]
    batches = make_batches(0, scenario)
    learner = create(name, make_net(6), heads_of(scenario), scenario, labels_trick=True, **REQUIRED.get(name, {}))
    with pytest.raises(
        MethodError, match=r"observe the task before it ends, or pass its labels to outputs\.add_labels"
    ):
        learner.end_task(batches)
    learner.outputs.add_labels(batches[0].y)
    learner.end_task(batches)
    learner.observe(*make_batches(1, scenario)[0])


@pytest.mark.parametrize("name", ["ewc", "online-ewc", "laplace"])
def test_a_label_that_regression_does_not_support_is_rejected_at_once(name):
    settings = {"fisher_label": "predicted"} | REQUIRED.get(name, {})
    with pytest.raises(MethodError, match="choose true, sampled or exact"):
        METHODS[name](nn.Linear(3, 1), Outputs(Heads(1, ((0,),)), likelihood=Gaussian()), **settings)


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=IDS)
def test_the_global_generator_is_not_used(name, settings, scenarios, heads_of, make_net, make_batches):
    scenario = scenarios["domain"]
    net = make_net(2)
    before = torch.get_rng_state()
    learner = create(name, net, heads_of(scenario), scenario, **settings)
    train(learner, make_batches(0, scenario))
    train(learner, make_batches(1, scenario))
    learner.predict(make_batches(0, scenario)[0].x)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=IDS)
def test_every_learner_learns(name, settings, scenarios, heads_of, make_net, make_batches):
    scenario = scenarios["domain"]
    slow = (
        {"lr": 0.1}
        if settings.get("optimizer", name) in ("sgd", "upgd", "continual-backprop")
        else {}
        if name in ("bgd", "mesu", "bong", "ivon", "badam", "foo-vb", "exact-head")
        else {"lr": 0.02}
    )
    learner = create(name, make_net(2), heads_of(scenario), scenario, **{**settings, **slow})
    batches = make_batches(0, scenario)
    for _ in range(60):
        for b in batches:
            learner.observe(*b)
    accuracy = torch.cat([learner.predict(b.x).argmax(1) == b.y for b in batches]).float().mean()
    assert accuracy > 0.9


@pytest.mark.parametrize("name", list(METHODS))
def test_a_loss_that_is_not_finite_stops_before_the_weights_change(name, scenarios, heads_of, make_net, make_batches):
    scenario, net = scenarios["domain"], make_net(2)
    learner = create(name, net, heads_of(scenario), scenario, **REQUIRED.get(name, {}))
    x, y, task = make_batches(0, scenario)[0]
    before = {n: t.clone() for n, t in net.state_dict().items()}
    with pytest.raises((ValueError, ArithmeticError), match=r"nan|NaN|finite"):
        learner.observe(torch.full_like(x, torch.nan), y, task)
    assert same(before, dict(net.state_dict()))


def test_a_state_of_another_method_is_rejected(scenarios, heads_of, make_net):
    scenario = scenarios["domain"]
    sgd, si = (create(n, make_net(2), heads_of(scenario), scenario) for n in ("sgd", "si"))
    with pytest.raises(ValueError, match="not the state of a SI"):
        si.load_state_dict(sgd.state_dict())
