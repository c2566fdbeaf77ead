"""BGD as a learner: the optimizer's own steps, whatever the head."""

from __future__ import annotations

import pytest
import torch

from bgd import BGD as Optimizer
from bgd import labels_trick
from bgd.methods import create


@pytest.mark.parametrize("batched", [False, True])
def test_the_learner_equals_the_optimizer_in_a_plain_loop(batched, scenarios, heads_of, make_net, make_batches):
    scenario = scenarios["class"]
    settings = {"std_init": 0.1, "mc_samples": 4, "max_move": None, "boost": None}
    learner = create(
        "bgd",
        make_net(6).double(),
        heads_of(scenario),
        scenario,
        labels_trick=True,
        estimator="shared",
        batched=batched,
        seed=5,
        **settings,
    )
    net = make_net(6).double()
    optimizer = Optimizer.paper(net.parameters(), seed=5, std_max="init", **settings)
    for batch in make_batches(1, scenario):
        x, y, task = batch.x.double(), batch.y, batch.task

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = labels_trick(net(x), y, reduction="sum")
            loss.backward()
            return loss

        loss = learner.observe(x, y, task)
        assert loss == pytest.approx(optimizer.step(closure).item() / len(x), rel=1e-10)
    for p, q in zip(learner.net.parameters(), net.parameters(), strict=True):
        assert torch.allclose(p, q, rtol=1e-10)
        assert torch.allclose(learner.optimizer.state[p]["std"], optimizer.state[q]["std"], rtol=1e-10)


@pytest.mark.parametrize("test_samples", [0, 5])
def test_predictions_are_the_mean_networks_or_the_mean_probabilities(
    test_samples, scenarios, heads_of, make_net, make_batches
):
    scenario = scenarios["task"]
    learner = create("bgd", make_net(6), heads_of(scenario), scenario, std_init=0.3, test_samples=test_samples)
    x = make_batches(1, scenario)[0].x
    samples = learner.predict_samples(x, 5, 1)
    assert samples.shape == (5, len(x), 6)
    assert samples[:, :, 2:4].std(0).min() > 0
    expected = samples.softmax(2).mean(0) if test_samples else learner.net.eval()(x)[:, 2:4].softmax(1)
    found = learner.predict(x, 1).softmax(1)
    assert torch.allclose(found if test_samples else found[:, 2:4], expected, atol=1e-6)
