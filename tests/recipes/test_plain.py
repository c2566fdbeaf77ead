"""Loops without a package: as printed, and what they amount to."""

import pytest
import torch

import recipes
from bgd import BGD
from recipes import Net, batches, by_hand, grouped, posterior, run

TESTED = {"plain", "accumulation", "clipping", "amp", "lightning", "trainer", "accelerate", "skorch", "ddp"}


def test_every_snippet_has_a_test() -> None:
    assert set(recipes.names_of_snippets()) == TESTED


def test_a_plain_loop() -> None:
    names = run("plain", batches=batches())
    assert names["p"].probs.shape == (8, 3)
    torch.testing.assert_close(posterior(names["optimizer"]), by_hand(grouped(1)))


def loop(name: str, **settings: object) -> torch.Tensor:
    model = Net()
    optimizer = BGD(model.parameters(), **settings)
    run(name, model=model, optimizer=optimizer, batches=batches())
    return posterior(optimizer)


def test_accumulation() -> None:
    torch.testing.assert_close(loop("accumulation"), by_hand(grouped(4)))


@pytest.mark.filterwarnings("ignore:BGD's lr")
def test_clipping_with_a_schedule() -> None:
    torch.testing.assert_close(loop("clipping"), by_hand(grouped(1), clip=1.0), rtol=0.1, atol=0.01)


def test_loss_scaling() -> None:
    """Products in float16 differ by its precision, and the loss scale of 65,536 by nothing."""
    torch.testing.assert_close(loop("amp"), by_hand(grouped(1), clip=1.0), rtol=0.02, atol=5e-3)
