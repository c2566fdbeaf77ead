"""Which outputs the loss and the prediction run over."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from bgd.methods import MethodError, create
from bgd.methods.common.likelihoods import Gaussian
from bgd.methods.common.outputs import Outputs
from bgd.scenarios import scenario, shared_heads
from bgd.scenarios.heads import Heads

HEADS = Heads(6, ((0, 1), (2, 3), (4, 5)))


@pytest.fixture
def scores() -> torch.Tensor:
    return torch.randn(8, 6, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("over", "columns"), [("all", [0, 1, 2, 3, 4, 5]), ("task", [2, 3]), ("seen", [0, 2, 3]), ("batch", [2, 3])]
)
def test_loss_equals_cross_entropy_over_the_chosen_columns(over, columns, scores):
    outputs = Outputs(HEADS, over)
    y = torch.tensor([2, 3] * 4)
    outputs.add_labels(torch.tensor([0]))
    outputs.add_labels(y)
    expected = F.cross_entropy(scores[:, columns], torch.tensor([columns.index(int(i)) for i in y]))
    assert torch.allclose(outputs.loss(scores, y, task=1), expected)


def test_the_task_of_each_sample_may_differ_within_a_batch(scores):
    outputs = Outputs(HEADS, "task")
    task = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    y = 2 * task
    expected = torch.stack([outputs.loss(scores[i : i + 1], y[i : i + 1], int(task[i])) for i in range(8)]).mean()
    assert torch.allclose(outputs.loss(scores, y, task), expected)
    restricted = outputs.restrict(scores, task)
    assert restricted.isfinite().sum(1).tolist() == [2] * 8
    assert restricted[2, 4:].equal(scores[2, 4:])


def test_outputs_outside_the_loss_get_no_gradient(scores):
    outputs = Outputs(HEADS, "batch")
    scores.requires_grad_()
    outputs.loss(scores, torch.tensor([0, 3] * 4)).backward()
    assert scores.grad.abs().sum(0).gt(0).tolist() == [True, False, False, True, False, False]


def test_importance_with_the_trick_does_not_depend_on_the_batch():
    outputs = Outputs(HEADS, "batch")
    outputs.add_labels(torch.tensor([2]))
    outputs.add_labels(torch.tensor([3]))
    assert outputs.consolidation_mask().tolist() == [False, False, True, True, False, False]
    outputs.clear_current()
    outputs.add_labels(torch.tensor([4]))
    assert outputs.consolidation_mask().nonzero().tolist() == [[4]]


@pytest.mark.parametrize(
    ("y", "task", "message"),
    [
        (6, 1, "label 6 is outside the network's 6 outputs"),
        (-1, 1, "label -1 is outside"),
        (0, 1, r"label 0 is not in the head of its task 1, outputs \(2, 3\)"),
        (2, 3, "task 3 has no head: there are 3 tasks"),
        (2, None, "needs the task of every batch"),
    ],
)
def test_labels_and_tasks_without_outputs_are_rejected(y, task, message, scenarios, make_net):
    learner = create("sgd", make_net(6), HEADS, scenarios["task"])
    with pytest.raises(ValueError, match=message):
        learner.observe(torch.zeros(1, 5), torch.tensor([y]), task)


def test_a_net_of_another_width_is_rejected(scenarios, make_net):
    learner = create("sgd", make_net(5), HEADS, scenarios["task"])
    with pytest.raises(ValueError, match=r"shape \(1, 5\), but the heads have 6 outputs"):
        learner.observe(torch.zeros(1, 5), torch.tensor([2]), 1)


def test_a_regression_rejects_targets_that_would_merely_broadcast():
    outputs = Outputs(Heads(1, ((0,),)), likelihood=Gaussian())
    scores, y = torch.zeros(5, 1), torch.ones(5)
    with pytest.raises(MethodError, match=r"targets of shape \(5,\) for scores of shape \(5, 1\): pass y\[:, None\]"):
        outputs.loss(scores, y)
    with pytest.raises(MethodError, match="one for each output"):
        outputs.likelihood.score_gradients(scores, torch.ones(5, 2), "true")
    assert outputs.loss(scores, y[:, None]) == 0.5


@pytest.mark.parametrize("method", ["bgd", "vcl", "bbb"])
def test_samples_of_a_regression_are_averaged_as_numbers(method):
    settings = {} if method == "bgd" else {"train_size": 10}
    net = torch.nn.Linear(3, 2)
    learner = create(
        method, net, shared_heads(1, 2), scenario("domain"), likelihood=Gaussian(), test_samples=7, **settings
    )
    x = torch.randn(4, 3)
    torch.testing.assert_close(learner.predict(x), learner.predict_samples(x, 7).mean(0))


def test_lwf_rejects_a_regression():
    with pytest.raises(MethodError, match="probabilities of labels"):
        create("lwf", torch.nn.Linear(3, 1), shared_heads(1, 1), scenario("domain"), likelihood=Gaussian())
