"""Learning without forgetting: distillation at a temperature."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from bgd.methods import create


@pytest.fixture(params=["task", "domain", "class"])
def ended(request, scenarios, heads_of, make_net, make_batches):
    scenario = scenarios[request.param]
    heads = heads_of(scenario)
    learner = create("lwf", make_net(heads.outputs, dropout=0.5), heads, scenario, temperature=3.0)
    for t in range(2):
        for batch in make_batches(t, scenario):
            learner.observe(*batch)
        learner.end_task()
    return learner, make_batches(2, scenario)[0].x, request.param


def test_equal_networks_have_no_distillation_gradient(ended):
    learner, x, _ = ended
    learner.net.eval()
    loss = learner.distillation(x, learner.net(x))
    learner.net.zero_grad()
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-7)
    assert all(p.grad.abs().max() < 1e-7 for p in learner.net.parameters())


@pytest.mark.parametrize("balance", [False, True])
def test_the_distance_is_the_sum_over_old_heads_or_their_mean(ended, balance):
    learner, x, where = ended
    learner.balance = balance
    learner.net.eval()
    teacher = learner.net(x).detach()
    with torch.no_grad():
        for p in learner.net.parameters():
            p.add_(0.2 * torch.linspace(-1, 1, p.numel()).view_as(p))
    student = learner.net(x)
    groups = {"task": [[0, 1], [2, 3]], "domain": [[0, 1]], "class": [[0, 1, 2, 3]]}[where]
    expected = 0.0
    for h in groups:
        p, q = (s[:, h].div(3.0).softmax(1) for s in (teacher, student))
        expected += 9.0 * (p * (p / q).log()).sum(1).mean()
    expected = expected / len(groups) if balance else expected
    assert learner.distillation(x, student).item() == pytest.approx(expected.item(), rel=1e-4)
    assert expected.item() > 1e-3


def test_the_variant_of_van_de_ven_and_tolias(scenarios, heads_of, make_net, make_batches):
    """Class learning, third task: 1/3 of the loss, 2/3 of the distillation, new labels as rivals with target 0."""
    scenario = scenarios["class"]
    learner = create(
        "lwf", make_net(6), heads_of(scenario), scenario, loss_over="seen", balance=True, distil_over="seen"
    )
    for t in range(2):
        for batch in make_batches(t, scenario):
            learner.observe(*batch)
        learner.end_task()
    x, y, _ = make_batches(2, scenario)[0]
    learner.outputs.add_labels(y)
    scores = learner.net(x).detach()
    p = (scores[:, :4] / 2).softmax(1)
    q = (scores / 2).softmax(1)[:, :4]
    distillation = 4 * (p * (p / q).log()).sum(1).mean()
    expected = F.cross_entropy(scores, y) / 3 + 2 / 3 * distillation
    assert torch.allclose(learner.loss(x, y, None), expected, rtol=1e-5)


def test_it_keeps_old_outputs_better_than_adam(scenarios, heads_of, make_net, make_batches):
    scenario = scenarios["task"]
    drift = {}
    for name, settings in (("adam", {"lr": 0.01}), ("lwf", {"lr": 0.01, "coefficient": 5.0})):
        learner = create(name, make_net(6), heads_of(scenario), scenario, **settings)
        x = make_batches(1, scenario)[0].x
        for t in range(2):
            for _ in range(40):
                for batch in make_batches(t, scenario):
                    learner.observe(*batch)
            if t == 0:
                learner.end_task()
                before = learner.predict(x, 0)[:, :2].softmax(1)
        drift[name] = (learner.predict(x, 0)[:, :2].softmax(1) - before).abs().mean()
    assert drift["lwf"] < 0.5 * drift["adam"]


def test_tied_weights_and_buffers_that_are_not_saved_are_part_of_the_teacher(scenarios, heads_of, make_batches):
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            inputs = make_batches(0, scenarios["domain"])[0].x[0].numel()
            self.first, self.again, self.out = (
                nn.Linear(inputs, inputs),
                nn.Linear(inputs, inputs),
                nn.Linear(inputs, 2),
            )
            self.again.weight = self.first.weight
            self.register_buffer("shift", torch.zeros(2), persistent=False)

        def forward(self, x):
            return self.out(self.again(self.first(x.flatten(1)).relu()).relu()) + self.shift

    scenario = scenarios["domain"]
    learner = create("lwf", Tied(), heads_of(scenario), scenario)
    for t in range(2):
        for batch in make_batches(t, scenario):
            learner.observe(*batch)
        learner.end_task()
    x = make_batches(2, scenario)[0].x
    assert learner.distillation(x, learner.net(x)).item() == pytest.approx(0, abs=1e-6)
    learner.net.shift.add_(torch.tensor([3.0, 0.0]))  # the teacher keeps its own
    assert learner.distillation(x, learner.net(x)).item() > 0.1
