"""The labels trick: a loss over the heads of the labels in the batch, and nothing else."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import grad, vmap

from bgd import labels_trick
from bgd.losses import labels_present
from bgd.optim.compilation import can_compile


def by_hand(logits: Tensor, labels: Tensor) -> Tensor:
    """The definition, with the loops that the real one must not have."""
    heads = sorted({int(y) for y in labels})
    total = logits.new_zeros(())
    for z, y in zip(logits, labels, strict=True):
        total = total - z[y] + torch.log(sum(z[c].exp() for c in heads))
    return total


@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), outputs=st.integers(1, 8))
def test_equals_its_definition(seed: int, n: int, outputs: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, outputs, generator=generator, dtype=torch.float64)
    labels = torch.randint(outputs, (n,), generator=generator)
    torch.testing.assert_close(labels_trick(logits, labels, reduction="sum"), by_hand(logits, labels))


def test_absent_heads_have_a_gradient_of_exactly_zero() -> None:
    logits = torch.randn(6, 10, requires_grad=True)
    labels_trick(logits, torch.tensor([3, 4, 3, 3, 4, 4])).backward()
    assert logits.grad is not None
    absent = [c for c in range(10) if c not in (3, 4)]
    assert torch.equal(logits.grad[:, absent], torch.zeros(6, 8))
    assert bool((logits.grad[:, [3, 4]] != 0).all())


def test_all_labels_present_is_plain_cross_entropy() -> None:
    logits, labels = torch.randn(9, 3), torch.arange(3).repeat(3)
    torch.testing.assert_close(labels_trick(logits, labels), F.cross_entropy(logits, labels))


def test_one_label_only_has_no_loss_and_no_gradient() -> None:
    logits = torch.randn(5, 4, requires_grad=True)
    loss = labels_trick(logits, torch.full((5,), 2))
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert torch.equal(logits.grad, torch.zeros(5, 4))


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_an_empty_batch_has_no_loss_and_no_gradient(reduction: str) -> None:
    logits = torch.randn(0, 4, requires_grad=True)
    loss = labels_trick(logits, torch.zeros(0, dtype=torch.int64), reduction=reduction)
    loss.backward()
    assert loss.item() == 0


@pytest.mark.parametrize("label", [-1, 4, 99])
def test_a_label_out_of_range_is_named(label: int) -> None:
    with pytest.raises(ValueError, match=f"label {label} .* 4 outputs"):
        labels_trick(torch.randn(2, 4), torch.tensor([0, label]))


def test_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"\(2, 4\) and \(3,\)"):
        labels_trick(torch.randn(2, 4), torch.zeros(3, dtype=torch.int64))


def test_ignored_labels_are_absent() -> None:
    logits = torch.randn(4, 5, requires_grad=True)
    loss = labels_trick(logits, torch.tensor([1, 2, -100, 1]), reduction="sum")
    torch.testing.assert_close(loss, by_hand(logits[[0, 1, 3]], torch.tensor([1, 2, 1])))
    nothing = labels_trick(logits, torch.full((4,), -100), reduction="sum")
    nothing.backward()
    assert nothing.item() == 0
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())


@pytest.mark.parametrize(
    ("criterion", "settings"),
    [
        (F.cross_entropy, {"label_smoothing": 0.1}),
        (F.cross_entropy, {"weight": torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])}),
        (F.cross_entropy, {"weight": torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), "label_smoothing": 0.2}),
        (F.multi_margin_loss, {}),
        (nn.MultiMarginLoss(), {}),
        (nn.CrossEntropyLoss(reduction="sum"), {}),
    ],
)
def test_any_criterion_sees_an_ordinary_problem_of_the_labels_present(criterion, settings) -> None:
    logits, labels = torch.randn(6, 5), torch.tensor([1, 3, 3, 1, 1, 3])
    compact, renumbered = logits[:, [1, 3]], torch.tensor([0, 1, 1, 0, 0, 1])
    own = {k: v[[1, 3]] if k == "weight" else v for k, v in settings.items()}
    expected = criterion(compact, renumbered, **own)
    torch.testing.assert_close(labels_trick(logits, labels, criterion, **settings), expected)


def test_runs_under_vmap_over_logits_and_over_both() -> None:
    logits = torch.randn(7, 6, 5)
    labels = torch.randint(5, (7, 6))
    one = vmap(lambda z: labels_trick(z, labels[0]))(logits)
    torch.testing.assert_close(one, torch.stack([labels_trick(z, labels[0]) for z in logits]))
    both = vmap(labels_trick)(logits, labels)
    torch.testing.assert_close(both, torch.stack([labels_trick(z, y) for z, y in zip(logits, labels, strict=True)]))
    gradients = vmap(grad(labels_trick))(logits, labels)
    assert bool(gradients.isfinite().all())


@pytest.mark.skipif(not can_compile(), reason="no C++ compiler on this machine")
def test_runs_compiled_in_one_graph() -> None:
    logits, labels = torch.randn(6, 5), torch.tensor([1, 3, 3, 1, 1, 3])
    compiled = torch.compile(labels_trick, fullgraph=True)
    torch.testing.assert_close(compiled(logits, labels), labels_trick(logits, labels))


def test_mask_of_labels() -> None:
    assert labels_present(torch.tensor([0, 2]), 4).tolist() == [True, False, True, False]
    assert labels_present(torch.zeros(0, dtype=torch.int64), 2).tolist() == [False, False]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_an_ignored_label_is_absent_even_where_it_is_an_output(smoothing: float) -> None:
    logits = torch.randn(4, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss = labels_trick(logits, torch.tensor([0, 1, 3, 1]), ignore_index=0, label_smoothing=smoothing)
    expected = F.cross_entropy(logits[1:, [1, 3]], torch.tensor([0, 1, 0]), label_smoothing=smoothing)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert logits.grad is not None
    assert not logits.grad[:, [0, 2, 4]].any()
    nothing = labels_trick(logits, torch.zeros(4).long(), ignore_index=0, label_smoothing=smoothing, reduction="sum")
    assert nothing == 0
