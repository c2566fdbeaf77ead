"""Accelerate: accumulation, clipping and prepared optimizers."""

import pytest

pytest.importorskip("accelerate")

import torch

from bgd import BGD
from recipes import Net, by_hand, grouped, loader, posterior, run

pytestmark = pytest.mark.filterwarnings("ignore")  # the package's own


def test_accumulation_and_clipping() -> None:
    model = Net()
    optimizer = BGD(model.parameters())
    run("accelerate", model=model, optimizer=optimizer, loader=loader())
    assert optimizer.steps == 4
    torch.testing.assert_close(posterior(optimizer), by_hand(grouped(2), clip=1.0))
