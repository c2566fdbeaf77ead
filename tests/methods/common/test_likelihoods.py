"""Losses by name, and plain functions as likelihoods."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from bgd.methods import MethodError, create
from bgd.methods.common.likelihoods import LIKELIHOODS, Categorical, FunctionLikelihood, Gaussian, find_likelihood
from bgd.methods.common.outputs import Outputs
from bgd.scenarios.heads import Heads

HEADS = Heads(6, ((0, 1), (2, 3), (4, 5)))


def cross_entropy(scores, y):
    return F.cross_entropy(scores, y, reduction="none")


def mean_loss(scores, y):
    return F.cross_entropy(scores, y)


class OwnLikelihood:
    classification = True

    def loss(self, scores, y):
        return cross_entropy(scores, y)

    def score_gradients(self, scores, y, label, generator=None):
        return torch.zeros(1, *scores.shape)


class Incomplete:
    def loss(self, scores, y):
        return cross_entropy(scores, y)


class WithArguments(OwnLikelihood):
    def __init__(self, gamma):
        self.gamma = gamma


def test_built_in_losses_and_own_objects_are_found():
    assert isinstance(find_likelihood("categorical"), Categorical)
    assert isinstance(find_likelihood("gaussian"), Gaussian)
    assert set(LIKELIHOODS) == {"categorical", "gaussian"}
    assert isinstance(find_likelihood(OwnLikelihood), OwnLikelihood)
    own = OwnLikelihood()
    assert find_likelihood(own) is own
    assert find_likelihood(cross_entropy).function is cross_entropy


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("no_such_module:loss", r"loss 'no_such_module:loss': cannot import no_such_module"),
        ("categorial", "no loss 'categorial': did you mean 'categorical'"),
        (Incomplete, "'Incomplete': the class has no 'score_gradients'; give a function"),
        (WithArguments, "'WithArguments': the class must be callable without arguments"),
        ("math:pi", "loss 'math:pi' is a float; give a function"),
    ],
)
def test_invalid_losses_are_rejected(loss, message):
    with pytest.raises(ValueError, match=message):
        find_likelihood(loss)


@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_a_plain_function_are_those_of_its_loss(masked):
    scores, y = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 0, 1, 0])
    if masked:
        scores[:, 2:] = -torch.inf
    with torch.no_grad():
        found = FunctionLikelihood(cross_entropy).score_gradients(scores, y, "true")
    torch.testing.assert_close(found, Categorical().score_gradients(scores, y, "true"))
    assert not scores.requires_grad


def test_masked_outputs_have_no_gradient_whatever_the_function():
    def smoothed(scores, y):
        return cross_entropy(scores, y) - 0.1 * scores.log_softmax(1).mean(1)

    scores = torch.tensor([[1.0, 2.0, -torch.inf]])
    found = FunctionLikelihood(smoothed).score_gradients(scores, torch.tensor([0]), "true")
    assert found[0, 0, 2] == 0
    assert found[0, 0, 0] != 0


@pytest.mark.parametrize("label", ["predicted", "sampled", "exact"])
def test_a_plain_function_supports_true_labels_only(label):
    likelihood = FunctionLikelihood(cross_entropy)
    with pytest.raises(MethodError, match=rf"label='{label}': .*cross_entropy\) is a plain function.*choose true"):
        likelihood.score_gradients(torch.zeros(1, 2), torch.tensor([0]), label)


@pytest.mark.parametrize("method", ["ewc", "kfac", "noisy-kfac", "laplace"])
def test_methods_reject_it_with_other_labels_before_training(method, scenarios, make_net):
    settings = {"train_size": 9} if method in ("laplace", "noisy-kfac") else {}
    with pytest.raises(MethodError, match="choose true"):
        create(method, make_net(6), HEADS, scenarios["task"], likelihood=cross_entropy, **settings)
    create(method, make_net(6), HEADS, scenarios["task"], likelihood=cross_entropy, fisher_label="true", **settings)


@pytest.mark.parametrize(("method", "settings"), [("sgd", {}), ("bgd", {}), ("ewc", {"fisher_label": "true"})])
@pytest.mark.parametrize("labels_trick", [False, True])
def test_cross_entropy_as_a_plain_function_trains_as_the_built_in(
    method, settings, labels_trick, scenarios, make_net, make_batches
):
    scenario = scenarios["task"]
    learners = [
        create(method, make_net(6), HEADS, scenario, labels_trick=labels_trick, likelihood=likelihood, **settings)
        for likelihood in (cross_entropy, "categorical")
    ]
    for t in range(2):
        for b in make_batches(t, scenario):
            losses = [learner.observe(*b) for learner in learners]
            assert losses[0] == pytest.approx(losses[1], rel=1e-5)
        for learner in learners:
            learner.end_task(make_batches(t, scenario))
    for p, q in zip(*(learner.net.parameters() for learner in learners), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-6)


def test_a_function_that_does_not_return_one_loss_per_sample_is_rejected():
    outputs = Outputs(HEADS, likelihood=find_likelihood(mean_loss))
    with pytest.raises(MethodError, match=r"mean_loss\) returned \(\) for 3 samples: return one loss for each"):
        outputs.loss(torch.zeros(3, 6), torch.tensor([0, 1, 2]))
