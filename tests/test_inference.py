"""Predictions from a posterior: four ways to choose, and two kinds of uncertainty."""

import math
from collections import UserDict
from types import SimpleNamespace

import pytest
import torch
from shared_bgd import shared_bgd
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from bgd import Prediction, predict
from bgd.inference import INFERENCES, entropy


@pytest.fixture
def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))


def test_four_methods_on_a_case_worked_by_hand() -> None:
    # Two inputs, three sampled networks over two classes, with probabilities of class 1:
    sampled = torch.tensor([[0.9, 0.45], [0.2, 0.45], [0.2, 0.9]])
    probs = torch.stack([1 - sampled, sampled], -1)
    p = Prediction(probs, torch.tensor([[0.3, 0.7], [0.8, 0.2]]))
    assert p.votes.tolist() == [[2.0, 1.0], [2.0, 1.0]]
    torch.testing.assert_close(p.mutual_information, entropy(probs.mean(0)) - entropy(probs).mean(0))
    assert p.labels_by("map").tolist() == [1, 0]
    assert p.labels_by("vote").tolist() == [0, 0]
    assert p.labels_by("mean_softmax").tolist() == [0, 1]  # 1.3/3 and 1.8/3
    assert p.labels_by("mc").tolist() == [[1, 0], [0, 0], [0, 1]]
    truth = torch.tensor([1, 1])
    assert [p.accuracy(truth, m) for m in INFERENCES] == pytest.approx([0.5, 2 / 6, 0.0, 0.5])


def test_a_vote_is_a_majority_not_any_vote() -> None:
    chosen = torch.tensor([0] + [1] * 5 + [2] * 4)
    p = Prediction(torch.nn.functional.one_hot(chosen, 3).double()[:, None], torch.full((1, 3), 1 / 3))
    assert p.votes.tolist() == [[1.0, 5.0, 4.0]]
    assert p.labels_by("vote").tolist() == [1]


def test_a_tied_vote_goes_to_the_larger_mean_probability() -> None:
    sure, unsure = [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]
    p = Prediction(torch.tensor([sure, unsure])[:, None], torch.eye(3)[:1])
    assert p.votes.tolist() == [[0.0, 1.0, 1.0]]
    assert p.labels_by("vote").tolist() == [1]


def test_probabilities_entropy_and_mutual_information(model: nn.Module) -> None:
    optimizer = shared_bgd(model.parameters(), std_init=0.5, seed=1)
    x = torch.randn(50, 4)
    p = predict(model, optimizer, x, samples=20)
    torch.testing.assert_close(p.probs.sum(-1), torch.ones(50))
    assert bool(((p.entropy >= 0) & (p.entropy <= math.log(3) + 1e-6)).all())
    assert bool((p.mutual_information <= p.entropy + 1e-6).all())
    assert float(p.mutual_information.mean()) > 0.01
    assert p.votes.sum(-1).tolist() == [20.0] * 50
    # with no uncertainty left, all four agree and no information is to be had
    certain = shared_bgd(model.parameters(), std_init=1e-6, seed=1)
    q = predict(model, certain, x)
    torch.testing.assert_close(q.probs, q.at_mean, rtol=1e-3, atol=1e-4)
    assert float(q.mutual_information.max()) < 1e-4


def test_mean_softmax_is_the_mean_over_the_networks_that_sampled_shows(model: nn.Module) -> None:
    x = torch.randn(7, 4)
    model.eval()
    first = shared_bgd(model.parameters(), std_init=0.3, seed=9)
    shown = []
    for _ in range(4):
        with first.sampled():
            shown.append(model(x).detach().softmax(-1))
    p = predict(model, shared_bgd(model.parameters(), std_init=0.3, seed=9), x, samples=4)
    torch.testing.assert_close(p.probs, torch.stack(shown).mean(0))


def test_batch_by_batch_equals_all_at_once(model: nn.Module) -> None:
    x, y = torch.randn(23, 4), torch.randint(3, (23,))
    loader = DataLoader(TensorDataset(x, y), batch_size=5)
    at_once = predict(model, shared_bgd(model.parameters(), std_init=0.3, seed=9), x)
    by_batch = predict(model, shared_bgd(model.parameters(), std_init=0.3, seed=9), loader)
    torch.testing.assert_close(by_batch.probs, at_once.probs)
    assert torch.equal(by_batch.sample_labels, at_once.sample_labels)
    for method in INFERENCES:
        assert by_batch.accuracy(y, method) == pytest.approx(at_once.accuracy(y, method))
    only_x = predict(model, shared_bgd(model.parameters(), std_init=0.3, seed=9), iter([x[:10], x[10:]]))
    torch.testing.assert_close(only_x.probs, at_once.probs)


def test_the_model_is_left_as_it_was(model: nn.Module) -> None:
    optimizer = shared_bgd(model.parameters(), std_init=0.3)
    model.train()
    model[0].eval()
    before = [p.clone() for p in model.parameters()]
    predict(model, optimizer, torch.randn(3, 4))
    assert [m.training for m in model] == [False, True, True, True]
    assert all(map(torch.equal, before, model.parameters()))


def test_outputs_restrict_the_choice(model: nn.Module) -> None:
    optimizer = shared_bgd(model.parameters(), std_init=0.3)
    p = predict(model, optimizer, torch.randn(40, 4), outputs=torch.tensor([True, False, True]))
    assert float(p.probs[:, 1].max()) == 0
    assert not bool((p.sample_labels == 1).any())
    assert bool(p.entropy.isfinite().all())
    assert bool(p.expected_entropy.isfinite().all())


def test_a_plain_model_has_a_map_prediction(model: nn.Module) -> None:
    p = predict(model, None, torch.randn(6, 4))
    assert torch.equal(p.probs, p.at_mean)
    assert float(p.mutual_information.max()) == 0
    with pytest.raises(ValueError, match="'mc'"):
        p.accuracy(torch.zeros(6), "mc")


def test_bad_input_is_named(model: nn.Module) -> None:
    optimizer = shared_bgd(model.parameters())
    with pytest.raises(ValueError, match="-1"):
        predict(model, optimizer, torch.randn(2, 4), samples=-1)
    with pytest.raises(ValueError, match="empty"):
        predict(model, optimizer, [])
    with pytest.raises(TypeError, match="got str"):
        predict(model, optimizer, ["x"])
    with pytest.raises(ValueError, match=r"logits \(N, C\), got \(2, 5, 3\)"):
        predict(model, optimizer, torch.randn(2, 5, 4))
    with pytest.raises(ValueError, match="another model"):
        predict(nn.Linear(4, 3), optimizer, torch.randn(2, 4))
    p = predict(model, optimizer, torch.randn(2, 4))
    with pytest.raises(ValueError, match="'mean'"):
        p.labels_by("mean")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 labels"):
        p.accuracy(torch.zeros(3))


def test_one_output_has_no_probabilities():
    model = torch.nn.Linear(3, 1)
    with pytest.raises(ValueError, match="at least two classes"):
        predict(model, shared_bgd(model.parameters()), torch.randn(4, 3))


# --- regression, labels, other batches


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"value": self.layer(left) + right}


def test_a_regression_has_draws_a_mean_and_a_spread() -> None:
    model = nn.Linear(4, 1)
    optimizer = shared_bgd(model.parameters(), std_init=0.3, seed=1)
    x = torch.randn(6, 4)
    p = predict(model, optimizer, x, samples=4000, kind="values")
    assert p.draws.shape == (4000, 6, 1)
    expected = 0.3 * (1 + x.square().sum(1, keepdim=True)).sqrt()  # the std of w x + b
    torch.testing.assert_close(p.spread, expected, rtol=0.08, atol=0.0)
    torch.testing.assert_close(p.mean, model(x).detach(), rtol=0.0, atol=float(5 * expected.max() / 4000**0.5))
    with pytest.raises(ValueError, match="use mean and spread"):
        _ = p.entropy
    with pytest.raises(ValueError, match="accuracy needs probabilities"):
        p.accuracy(torch.zeros(6))


@pytest.mark.parametrize("outputs", [1, 3])
def test_one_logit_and_several_labels(outputs: int) -> None:
    model = nn.Linear(4, outputs)
    optimizer = shared_bgd(model.parameters(), std_init=0.5, seed=1)
    p = predict(model, optimizer, torch.randn(6, 4), samples=50, kind="labels")
    assert p.probs.shape == p.entropy.shape == p.labels.shape == (6, outputs)
    assert bool(((p.draws > 0) & (p.draws < 1)).all())
    assert float(p.entropy.max()) <= math.log(2) + 1e-6
    assert float(p.mutual_information.mean()) > 0.005
    assert torch.equal(p.labels, (p.draws.mean(0) > 0.5).long())
    assert torch.equal(p.labels_by("map"), (p.at_mean > 0.5).long())
    assert torch.equal(p.labels_by("vote"), (p.sample_labels.float().mean(0) > 0.5).long())
    truth = p.labels.clone()
    truth[0] = 1 - truth[0]
    assert p.accuracy(truth) == pytest.approx(5 / 6)
    assert p.accuracy(truth, "mc") == pytest.approx(float((p.sample_labels == truth).float().mean()))
    if outputs == 1:  # one logit: labels of a plain data set
        assert p.accuracy(truth[:, 0]) == pytest.approx(5 / 6)
    else:
        with pytest.raises(ValueError, match=r"labels of shape \(6, 3\), got a tensor \(6,\)"):
            p.accuracy(truth[:, 0])
    with pytest.raises(ValueError, match="kind='labels'"):
        _ = p.votes


def test_a_majority_of_networks_sets_a_label_and_a_tie_goes_to_the_larger_probability() -> None:
    draws = torch.tensor([[0.9, 0.6, 0.55], [0.2, 0.3, 0.1]])[..., None]  # two networks, three inputs
    p = Prediction(draws, torch.full((3, 1), 0.5), "labels")
    assert p.labels_by("vote").flatten().tolist() == [1, 0, 0]


class Arguments(nn.Module):
    """Takes two arguments and returns logits in a container, as Hugging Face's models do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, shift: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.layer(x + shift))


def test_batches_of_several_arguments_and_outputs_with_logits() -> None:
    x, shift, y = torch.randn(5, 4), torch.randn(5, 4), torch.zeros(5)
    model = Arguments()

    def found(inputs: object) -> torch.Tensor:
        return predict(model, shared_bgd(model.parameters(), std_init=0.3, seed=1), inputs).draws

    expected = found({"x": x, "shift": shift})
    assert torch.equal(found(UserDict({"x": x, "shift": shift})), expected)
    assert torch.equal(found(((x, shift), y)), expected)
    assert torch.equal(found([((x[:2], shift[:2]), y[:2]), ((x[2:], shift[2:]), y[2:])]), expected)
    assert torch.equal(found([({"x": x, "shift": shift}, y)]), expected)


def test_one_tuple_is_one_batch() -> None:
    model = nn.Linear(4, 3)
    optimizer = shared_bgd(model.parameters())
    x, y = torch.randn(5, 4), torch.zeros(5)
    assert torch.equal(predict(model, optimizer, (x, y)).at_mean, predict(model, optimizer, x).at_mean)


def test_dict_batches_and_a_forward_of_ones_own() -> None:
    model = TwoInputs()
    optimizer = shared_bgd(model.parameters(), std_init=0.3, seed=1)
    batch = {"left": torch.randn(5, 4), "right": torch.randn(5, 2)}
    with pytest.raises(TypeError, match=r"returned dict.*forward="):
        predict(model, optimizer, batch, kind="values")
    p = predict(model, optimizer, batch, kind="values", forward=lambda net, b: net(**b)["value"])
    by_batch = predict(
        model,
        shared_bgd(model.parameters(), std_init=0.3, seed=1),
        [(batch["left"][:2], batch["right"][:2]), (batch["left"][2:], batch["right"][2:])],
        kind="values",
        forward=lambda net, b: net(*b)["value"],
    )
    torch.testing.assert_close(p.draws, by_batch.draws)
    linear = nn.Linear(4, 2)
    q = predict(linear, shared_bgd(linear.parameters()), {"input": batch["left"]})
    torch.testing.assert_close(q.at_mean, linear(batch["left"]).detach().softmax(-1))
