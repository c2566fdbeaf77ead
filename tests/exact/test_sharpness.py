"""The sharpness that is found is the one that made the labels, and classes not yet known say nothing about it."""

import pytest
import torch

from bgd.exact.sharpness import GRID, best, initial_losses, update_losses


def labels_of(mean, sharpness, generator):
    return torch.multinomial((sharpness * mean).softmax(1), 1, generator=generator)[:, 0]


@pytest.mark.parametrize("sharpness", [4.0, 16.0])
def test_the_sharpness_of_the_labels_is_found(sharpness):
    generator = torch.Generator().manual_seed(0)
    losses, known = initial_losses(), torch.ones(5, dtype=torch.bool)
    for _ in range(10):
        mean = torch.rand(1000, 5, generator=generator).double()
        losses = update_losses(losses, mean, labels_of(mean, sharpness, generator), known)
    assert best(losses) == pytest.approx(sharpness, rel=0.25)


def test_a_change_is_followed():
    generator = torch.Generator().manual_seed(0)
    losses, known = initial_losses(), torch.ones(5, dtype=torch.bool)
    found = []
    for sharpness in [20.0] * 20 + [3.0] * 15:
        mean = torch.rand(500, 5, generator=generator).double()
        losses = update_losses(losses, mean, labels_of(mean, sharpness, generator), known)
        found.append(best(losses))
    assert found[19] > 14
    assert found[-1] < 4.5


def test_examples_of_unknown_classes_do_not_count():
    mean = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.6, 0.4, 0.0]]).double()
    known = torch.tensor([True, True, False])
    with_unknown = update_losses(initial_losses(), mean, torch.tensor([0, 1, 2]), known)
    without = update_losses(initial_losses(), mean[:2, :2], torch.tensor([0, 1]), known[:2])
    assert torch.equal(with_unknown, without)
    only_unknown = update_losses(initial_losses(), mean, torch.tensor([2, 2, 2]), known)
    assert torch.equal(only_unknown, initial_losses())
    assert GRID[0] <= best(with_unknown) <= GRID[-1]
