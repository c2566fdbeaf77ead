"""The curvature of a task's loss at the current weights, for the Laplace approximations.

Both kinds are Fisher information, *summed over the samples*: the precision that the data adds to a Gaussian posterior.
With cross-entropy or squared error, and labels "sampled" (on average) or "exact", it is the generalised Gauss-Newton
matrix, which is the Hessian wherever the network is linear in its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from bgd.inference import evaluating
from bgd.methods.common.base import trainable_parameters
from bgd.methods.common.likelihoods import Label, Likelihood
from bgd.methods.common.outputs import masked
from bgd.methods.common.types import MethodError
from bgd.methods.curvature.blocks import Curvature, Diagonal, Kronecker
from bgd.methods.curvature.gradient_powers import sum_gradient_powers
from bgd.methods.curvature.layers import find_layers, join_columns
from bgd.methods.curvature.recording import recording
from bgd.validation import check_choice

Shape = Literal["diagonal", "kronecker"]
"""The approximation of the curvature: each weight by itself, or one Kronecker product for each layer."""

Groups = dict[str, list[nn.Parameter]]
"""The parameters of each block, by the block's name."""


class Samples(NamedTuple):
    """Inputs, labels, and the outputs that compete: (outputs,), (B, outputs), or None for all."""

    x: Tensor
    y: Tensor
    mask: Tensor | None

    def batches(self, size: int) -> Iterator[Samples]:
        """In order, ``size`` at a time; a mask has one row for each sample."""
        for i in range(0, len(self.x), size):
            yield Samples(*(None if t is None else t[i : i + size] for t in self))  # type: ignore[arg-type]


def parameter_groups(net: nn.Module, shape: Shape) -> Groups:
    """Which parameters make a block: those of a layer for Kronecker products, each by itself for diagonals.

    >>> [len(parameter_groups(nn.Linear(2, 2), shape)) for shape in ("kronecker", "diagonal")]
    [1, 2]
    """
    check_choice("curvature", shape, get_args(Shape))
    if shape == "kronecker":
        return {name: list(layer.parameters(recurse=False)) for name, layer in find_layers(net).items()}
    return {name: [p] for name, p in trainable_parameters(net).items()}


def measure_curvature(
    net: nn.Module,
    likelihood: Likelihood,
    data: Iterable[Samples],
    shape: Shape = "kronecker",
    label: Label = "sampled",
    generator: torch.Generator | None = None,
) -> tuple[Curvature, int]:
    """The curvature of the loss summed over the data, and the number of samples; the net in evaluation mode.

    A Kronecker block is N (mean_b A_b) x (mean_b G_b), whatever the batch size.

    Args:
        net: the network.
        likelihood: its loss.
        data: at least one batch.
        shape: of the curvature.
        label: which labels to average over, see :data:`~bgd.methods.common.likelihoods.Label`.
        generator: for ``label="sampled"``.

    >>> from bgd.methods.common.likelihoods import Gaussian
    >>> data = [Samples(torch.tensor([[1.0], [3.0]]), torch.zeros(2, 1), None)]
    >>> blocks, count = measure_curvature(nn.Linear(1, 1, bias=False), Gaussian(), data, "diagonal", "exact")
    >>> blocks["weight"].d, count
    (tensor([[10.]]), 2)
    """

    def vectors(scores: Tensor, samples: Samples) -> Tensor:
        v = likelihood.score_gradients(masked(scores, samples.mask), samples.y, label, generator)
        used = v.flatten(1).any(dim=1)  # with exact labels, those of other tasks' heads have probability 0
        return v[used] if used.any() else v[:1]

    one_batch: Callable[..., dict[str, list[Tensor]]] = _kronecker if shape == "kronecker" else _diagonal
    total: dict[str, list[Tensor]] = {}
    count = 0
    with evaluating(net):
        for samples in data:
            count += len(samples.x)
            for name, sums in one_batch(net, samples, vectors).items():
                old = total.get(name)
                total[name] = sums if old is None else [a + b for a, b in zip(old, sums, strict=True)]
    if not count:
        raise MethodError("no data to measure curvature on: pass end_task the batches of the task just ended")
    return {
        name: Diagonal(sums[0]) if len(sums) == 1 else Kronecker(sums[0] / count, sums[1])
        for name, sums in total.items()
    }, count


def _diagonal(net: nn.Module, samples: Samples, vectors: Callable[..., Tensor]) -> dict[str, list[Tensor]]:
    squares = sum_gradient_powers(net, samples.x, lambda scores: vectors(scores, samples), power=2)
    return {name: [join_columns([square])] for name, square in squares.items()}


def _kronecker(net: nn.Module, samples: Samples, vectors: Callable[..., Tensor]) -> dict[str, list[Tensor]]:
    with recording(net) as record:
        scores = net(samples.x)
    blocks = record.curvature(scores, vectors(scores.detach(), samples))
    return {name: [len(samples.x) * factor for factor in block] for name, block in blocks.items()}
