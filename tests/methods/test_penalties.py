"""L2, EWC, Online EWC, SI and MAS against known answers."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from bgd.methods import MAS, SI, Gaussian, OnlineEWC, Outputs, create
from bgd.methods.common.penalty import QuadraticPenalty
from bgd.scenarios.heads import Heads
from bgd.scenarios.types import Batch, Knowledge, Scenario

PENALTIES = ["l2", "ewc", "online-ewc", "si", "mas"]
ONE = Heads(1, ((0,),))
REGRESSION = Scenario("domain", Knowledge.TASK_ID, task_in_testing=False, shared_head=True)


@pytest.mark.parametrize("name", [*PENALTIES, "lwf"])
@pytest.mark.parametrize("where", ["task", "domain", "class"])
@pytest.mark.parametrize("labels_trick", [False, True])
def test_with_coefficient_0_the_trajectory_is_adams_bit_for_bit(
    name, where, labels_trick, scenarios, heads_of, make_net, make_batches
):
    scenario = scenarios[where]
    heads = heads_of(scenario)
    with_penalty, adam = (
        create(n, make_net(heads.outputs), heads, scenario, labels_trick=labels_trick, **s)
        for n, s in ((name, {"coefficient": 0.0}), ("adam", {}))
    )
    for t in range(3):
        for batch in make_batches(t, scenario):
            assert with_penalty.observe(*batch) == adam.observe(*batch)
        for learner in (with_penalty, adam):
            learner.end_task(make_batches(t, scenario))
    for p, q in zip(with_penalty.net.parameters(), adam.net.parameters(), strict=True):
        assert torch.equal(p, q)


@pytest.mark.parametrize("settings", [{"consolidate_every": 1}, {"consolidate_every": 3, "proximal": False}])
@pytest.mark.parametrize("name", ["online-ewc", "mas"])
def test_with_coefficient_0_it_is_adam_without_boundaries(name, settings, scenarios, heads_of, make_net, make_batches):
    scenario = scenarios["continuous"]
    heads = heads_of(scenario)
    with_penalty = create(name, make_net(2), heads, scenario, coefficient=0.0, **settings)
    adam = create("adam", make_net(2), heads, scenario)
    for batch in make_batches(0, scenario):
        assert with_penalty.observe(*batch) == adam.observe(*batch)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("where", ["task", "domain", "class"])
@pytest.mark.parametrize("labels_trick", [False, True])
def test_every_penalty_acts_after_the_first_task(
    name, where, labels_trick, scenarios, heads_of, make_net, make_batches
):
    scenario = scenarios[where]
    heads = heads_of(scenario)
    learner = create(name, make_net(heads.outputs), heads, scenario, labels_trick=labels_trick)
    for batch in make_batches(0, scenario):
        learner.observe(*batch)
    assert learner.penalty.value() == 0
    learner.end_task(make_batches(0, scenario))
    assert learner.penalty.value() == 0  # the weights equal their anchor
    moved = {n: p.detach().clone() for n, p in learner.net.named_parameters()}
    for batch in make_batches(1, scenario):
        learner.observe(*batch)
    assert learner.penalty.value() > 0
    assert set(learner.penalty.importance) == set(moved)


@pytest.mark.parametrize("name", PENALTIES)
def test_the_gradient_is_that_of_the_documented_penalty(name, scenarios, heads_of, make_net, make_batches):
    scenario = scenarios["domain"]
    learner = create(name, make_net(2).double(), heads_of(scenario), scenario)
    double = [Batch(b.x.double(), b.y, b.task) for b in make_batches(0, scenario)]
    for batch in double:
        learner.observe(*batch)
    learner.end_task(double)
    omega = {n: t.clone() for n, t in learner.penalty.importance.items()}
    anchor = {n: p.detach().clone() for n, p in learner.net.named_parameters()}
    with torch.no_grad():
        for p in learner.net.parameters():
            p.add_(0.1)
            p.grad = torch.zeros_like(p)
    learner.penalty.add_gradient(3.0)
    shifted = {n: p.detach().clone().requires_grad_() for n, p in learner.net.named_parameters()}
    sum(3.0 * (omega[n] * (shifted[n] - anchor[n]) ** 2).sum() for n in shifted).backward()
    for n, p in learner.net.named_parameters():
        assert torch.allclose(p.grad, shifted[n].grad, rtol=1e-12)


@pytest.mark.parametrize("name", PENALTIES)
def test_a_step_descends_loss_plus_penalty(name, scenarios, heads_of, make_net, make_batches):
    scenario, c, lr = scenarios["domain"], 5.0, 0.05
    learner = create(name, make_net(2).double(), heads_of(scenario), scenario, optimizer="sgd", lr=lr, coefficient=c)
    first, second = ([Batch(b.x.double(), b.y, b.task) for b in make_batches(t, scenario)] for t in range(2))
    for batch in first:
        learner.observe(*batch)
    learner.end_task(first)
    anchor = {n: p.detach().clone() for n, p in learner.net.named_parameters()}
    for batch in second:
        before = {n: p.detach().clone().requires_grad_() for n, p in learner.net.named_parameters()}
        loss = F.cross_entropy(torch.func.functional_call(learner.net, before, (batch.x,)), batch.y)
        omega = learner.penalty.importance
        (loss + c * sum((omega[n] * (before[n] - anchor[n]) ** 2).sum() for n in before)).backward()
        learner.observe(*batch)
        for n, p in learner.net.named_parameters():
            assert torch.allclose(p, before[n] - lr * before[n].grad, rtol=1e-10, atol=1e-14)


def test_many_anchors_stored_as_one_quadratic_equal_their_sum():
    g = torch.Generator().manual_seed(0)
    p = nn.Parameter(torch.zeros(7, dtype=torch.float64))
    penalty = QuadraticPenalty({"p": p})
    tasks = []
    for _ in range(4):
        fisher = torch.rand(7, generator=g, dtype=torch.float64) * (torch.rand(7, generator=g) > 0.3)
        with torch.no_grad():
            p.copy_(torch.randn(7, generator=g, dtype=torch.float64))
        tasks.append((fisher, p.detach().clone()))
        penalty.add_task({"p": fisher})
    with torch.no_grad():
        p.copy_(torch.randn(7, generator=g, dtype=torch.float64))
    p.grad = torch.zeros_like(p)
    penalty.add_gradient(1.0)
    assert penalty.value() == pytest.approx(sum((f * (p - a) ** 2).sum().item() for f, a in tasks), rel=1e-12)
    assert torch.allclose(p.grad, sum(2 * f * (p.detach() - a) for f, a in tasks), rtol=1e-12)


@pytest.mark.parametrize(("name", "tasks"), [("ewc", 2), ("online-ewc", 4)])
def test_on_a_linear_gaussian_model_it_is_the_exact_posterior(name, tasks):
    """Orthogonal designs make the Hessian diagonal, so the diagonal Fisher is the whole of it.

    Online EWC stays exact for any number of tasks. EWC for two: its second anchor depends on the first task.
    """
    g, n = torch.Generator().manual_seed(0), 40
    scale = torch.tensor([3.0, 4.0, 6.0], dtype=torch.float64)
    x = [torch.linalg.qr(torch.randn(n, 3, generator=g, dtype=torch.float64))[0] * scale for _ in range(tasks)]
    y = [torch.randn(n, 1, generator=g, dtype=torch.float64) for _ in range(tasks)]
    net = nn.Linear(3, 1, bias=False).double()
    # The log posterior weights all samples equally: coefficient = N_old / (2 N_new) = 1/2 for tasks of equal size
    learner = create(
        name,
        net,
        ONE,
        REGRESSION,
        likelihood=Gaussian(),
        fisher_label="exact",
        optimizer="sgd",
        lr=0.3,
        coefficient=0.5,
    )
    for t in range(tasks):
        for _ in range(400):
            learner.observe(x[t], y[t])
        learner.end_task([Batch(x[t], y[t])])
        posterior_mean = torch.linalg.lstsq(torch.cat(x[: t + 1]), torch.cat(y[: t + 1])).solution.T
        posterior_precision = 2 * 0.5 * n * learner.penalty.importance["weight"][0]
        assert torch.allclose(net.weight, posterior_mean, rtol=1e-9)
        assert torch.allclose(posterior_precision, (torch.cat(x[: t + 1]) ** 2).sum(0), rtol=1e-12)


def test_si_attributes_the_decrease_of_a_quadratic_loss():
    # Under gradient descent on h/2 theta^2 the path integral is the decrease of the loss / (1 - lr h / 2), exactly
    h = torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64)
    net = nn.Linear(3, 3, bias=False).double()
    with torch.no_grad():
        net.weight.copy_(torch.diag(torch.tensor([1.0, -2.0, 3.0])))
    lr, x = 0.1, torch.diag(h.sqrt())
    learner = SI(
        net,
        Outputs(Heads(3, ((0, 1, 2),)), likelihood=Gaussian()),
        optimizer="sgd",
        lr=3 * lr,  # the loss is a mean over three samples
        coefficient=100.0,
        damping=0.5,
    )
    start = net.weight.detach().diag().clone()
    for _ in range(20):
        learner.observe(x, torch.zeros(3, 3, dtype=torch.float64))
    end = net.weight.detach().diag()
    decrease = h / 2 * (start**2 - end**2) / 3
    path = learner.path["weight"].diag()
    assert torch.allclose(path, decrease / (1 - lr * h / 2), rtol=1e-12)
    learner.end_task()
    omega = learner.penalty.importance["weight"].diag()
    assert torch.allclose(omega, decrease / (1 - lr * h / 2) / ((end - start) ** 2 + 0.5), rtol=1e-12)


def test_si_leaves_the_penalty_out_of_its_path():
    net = nn.Linear(1, 1, bias=False).double()
    learner = SI(net, Outputs(ONE, likelihood=Gaussian()), optimizer="sgd", lr=0.01, coefficient=50.0)
    x, y = torch.ones(1, 1, dtype=torch.float64), torch.full((1, 1), 2.0, dtype=torch.float64)
    for _ in range(5):
        learner.observe(x, y)
    learner.end_task()
    for _ in range(3):
        theta = net.weight.item()
        before = float(learner.path["weight"])
        learner.observe(x, -y)
        unpenalised = theta + 2.0
        assert float(learner.path["weight"]) - before == pytest.approx(
            -unpenalised * (net.weight.item() - theta), rel=1e-9
        )


def test_l2_keeps_weight_1_and_the_last_anchor(scenarios, heads_of, make_net, make_batches):
    scenario = scenarios["domain"]
    learner = create("l2", make_net(2), heads_of(scenario), scenario)
    for t in range(3):
        for batch in make_batches(t, scenario):
            learner.observe(*batch)
        learner.end_task()
    assert all(o.eq(1).all() for o in learner.penalty.importance.values())
    for n, p in learner.net.named_parameters():
        assert torch.equal(learner.penalty.anchor[n], p)


def test_online_ewc_sums_with_decay(scenarios, heads_of, make_net, make_batches):
    scenario = scenarios["domain"]
    learner = create("online-ewc", make_net(2), heads_of(scenario), scenario, decay=0.25)
    batches = make_batches(0, scenario)
    learner.end_task(batches)
    once = {n: t.clone() for n, t in learner.penalty.importance.items()}
    learner.end_task(batches)  # the weights have not moved: the same Fisher again
    for n, t in learner.penalty.importance.items():
        assert torch.allclose(t, 1.25 * once[n])


def quadratic(cls, **settings):
    net = nn.Linear(1, 1, bias=False).double()
    nn.init.constant_(net.weight, 1.0)
    return cls(net, Outputs(ONE, likelihood=Gaussian()), optimizer="sgd", **settings)


X, Y = torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)


@pytest.mark.parametrize("proximal", [False, True])
def test_consolidating_every_iteration_slows_important_weights_down(proximal):
    """Loss theta^2 / 2, Fisher 1 per step: the recursions of the docstring, by hand."""
    lr, c = 0.1, 0.05
    learner = quadratic(OnlineEWC, lr=lr, coefficient=c, fisher_label="exact", consolidate_every=1, proximal=proximal)
    previous = theta = 1.0
    for t in range(12):
        learner.observe(X, Y)
        if proximal:
            theta = theta - lr * theta / (1 + 2 * lr * c * (t + 1))
        else:
            previous, theta = theta, theta - lr * (theta + 2 * c * t * (theta - previous))
        assert learner.net.weight.item() == pytest.approx(theta, rel=1e-12)
    assert float(learner.penalty.importance["weight"]) == pytest.approx(12)


def test_consolidation_happens_at_every_third_iteration():
    learner = quadratic(MAS, lr=0.1, coefficient=0.1, consolidate_every=3)
    anchors = []
    for _ in range(7):
        before = learner.net.weight.item()
        learner.observe(X, Y)
        if "weight" in learner.penalty.anchor and float(learner.penalty.anchor["weight"]) == before:
            anchors.append(learner.iteration)
    assert anchors == [3, 6]


def test_the_gradient_form_raises_where_the_proximal_form_is_stable():
    x = torch.full((1, 1), 1.0, dtype=torch.float64)

    def run(proximal: bool | None) -> float:
        learner = quadratic(
            OnlineEWC,
            lr=0.1,
            coefficient=10.0,
            fisher_label="exact",
            consolidate_every=1,
            proximal=proximal,
        )
        for _ in range(400):
            learner.observe(x, Y)
        return learner.net.weight.item()

    assert 0 < run(True) < 1
    assert run(None) == run(True)  # without boundaries the stable form is the default
    with pytest.raises(ValueError, match="lower lr"):
        run(False)


@pytest.mark.parametrize("name", ["ewc", "online-ewc", "mas"])
def test_ending_a_task_without_its_data_is_rejected(name, scenarios, heads_of, make_net):
    scenario = scenarios["domain"]
    learner = create(name, make_net(2), heads_of(scenario), scenario)
    with pytest.raises(ValueError, match="pass end_task the batches"):
        learner.end_task()
