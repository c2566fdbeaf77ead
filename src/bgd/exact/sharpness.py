"""How far apart scores must lie to be probabilities: learnt from predictions of examples that came later.

The posterior's mean m of one-hot targets is no probability: what it says of a class lies between 0 and 1 only roughly,
and its errors are not Gaussian. But softmax(c m) is calibrated for a suitable sharpness c, a single number, which
follows from how well each c of a grid would have predicted the examples of each block before it was learnt. No
example is kept, and older blocks fade, since the classes and the posterior change.
"""

from __future__ import annotations

import torch
from torch import Tensor

GRID = 2 ** torch.linspace(1, 6, 41, dtype=torch.float64)
"""The choices of c, 2 to 64."""
START = 10.0
"""c before any evidence: between what suited parts of the training images of MNIST, Fashion-MNIST and CIFAR10."""
FADE = 0.8
"""How much the losses so far count beside a new block."""


def initial_losses() -> Tensor:
    """Losses of the grid that prefer ``START``, and hardly count beside those of data.

    >>> round(best(initial_losses()))
    10
    """
    return 0.01 * torch.log2(GRID / START).square()


def update_losses(losses: Tensor, mean: Tensor, labels: Tensor, known: Tensor) -> Tensor:
    """The losses of the grid with a block's: cross-entropies of softmax(c m) over the known classes, faded sums.

    Args:
        losses: so far, one for each c.
        mean: m, (B, K), by a posterior that had not seen the examples.
        labels: (B,).
        known: the classes which that posterior had seen, (K,) bool; examples of others say nothing about c.

    >>> mean, labels = torch.tensor([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6]]), torch.tensor([0, 0, 0])
    >>> losses = update_losses(initial_losses(), mean, labels, torch.tensor([True, True]))
    >>> best(losses) < START  # one in three was wrong
    True
    """
    rows = known[labels]
    if not rows.any() or known.sum() < 2:
        return losses
    classes = known.cumsum(0) - 1
    scores = mean[rows][:, known].double() * GRID.to(mean.device)[:, None, None]
    truth = classes[labels[rows]].expand(len(GRID), -1)
    found = torch.nn.functional.cross_entropy(scores.flatten(0, 1), truth.flatten(), reduction="none")
    return FADE * losses + found.reshape(len(GRID), -1).mean(1).to(losses.device)


def best(losses: Tensor) -> float:
    """The c of the least loss.

    >>> best(torch.arange(len(GRID)).double())
    2.0
    """
    return float(GRID[losses.argmin()])
