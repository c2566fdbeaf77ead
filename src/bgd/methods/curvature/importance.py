"""How much each weight mattered to some data: Fisher information, and the sensitivity of the outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from bgd.inference import evaluating
from bgd.methods.common.base import trainable_parameters
from bgd.methods.common.likelihoods import Label
from bgd.methods.common.outputs import Outputs, masked
from bgd.methods.common.penalty import Weights
from bgd.methods.common.types import MethodError
from bgd.methods.curvature.gradient_powers import add_to, power_of, sum_gradient_powers
from bgd.scenarios.types import Batch
from bgd.validation import check_choice

ImportanceOver = Literal["sample", "batch"]
"""Whether gradients are squared (or made absolute) per sample, or after their mean over a mini-batch was
taken. The second depends on the batch size; Hsu et al. used it for MAS, and for EWC on Permuted domain."""


def check_over(over: str, label: str | None = None) -> None:
    """Refuse a choice that does not exist, or that the label does not support.

    >>> check_over("batches")
    Traceback (most recent call last):
    bgd.errors.SettingError: over='batches': choose one of sample, batch
    """
    check_choice("over", over, get_args(ImportanceOver))
    if over == "batch" and label == "exact":
        raise MethodError("label='exact' is an expectation per sample: use over='sample', or another label")


def fisher(
    net: nn.Module,
    outputs: Outputs,
    batches: Iterable[Batch],
    label: Label = "predicted",
    over: ImportanceOver = "sample",
    generator: torch.Generator | None = None,
) -> Weights:
    """Diagonal Fisher information, F_i = mean_b E_y[(d log p(y | x_b) / d theta_i)^2].

    With ``over="batch"``, as Hsu et al.: the mean over batches of (batch size) x (gradient of the batch's
    mean loss)^2.

    Args:
        net: the network, used in evaluation mode.
        outputs: which outputs compete, and their likelihood.
        batches: the data; the result does not depend on the batch size (``over="sample"``).
        label: which labels y to average over.
        over: see :data:`ImportanceOver`.
        generator: for ``label="sampled"``.

    >>> from bgd.scenarios.heads import Heads
    >>> net, outputs = nn.Linear(1, 2, bias=False), Outputs(Heads(2, ((0, 1),)))
    >>> _ = nn.init.zeros_(net.weight)
    >>> data = [Batch(torch.tensor([[2.0]]), torch.tensor([0]))]
    >>> fisher(net, outputs, data)["weight"]      # (p - e_y)^2 x^2 = 0.5^2 2^2
    tensor([[1.],
            [1.]])
    """
    check_over(over, label)

    def vectors(scores: Tensor, batch: Batch) -> Tensor:
        scores = masked(scores, outputs.consolidation_mask(batch.task))
        return outputs.likelihood.score_gradients(scores, batch.y, label, generator)

    return _average(net, batches, vectors, 2, over)


def sensitivity(net: nn.Module, outputs: Outputs, batches: Iterable[Batch], over: ImportanceOver = "sample") -> Weights:
    """MAS importance, Omega_i = mean_b |d mean_o(f_o(x_b)^2) / d theta_i|, independent of the labels.

    The mean runs over the outputs of the loss (the task's head, the labels seen). With ``over="batch"``, as
    Hsu et al.: the mean over batches of |gradient of the batch's mean|.

    >>> from bgd.scenarios.heads import Heads
    >>> net, outputs = nn.Linear(1, 1, bias=False), Outputs(Heads(1, ((0,),)))
    >>> _ = nn.init.constant_(net.weight, -3.0)
    >>> data = [Batch(torch.tensor([[2.0]]), torch.tensor([0]))]
    >>> sensitivity(net, outputs, data)["weight"]      # |2 w| x^2
    tensor([[24.]])
    """
    check_over(over)

    def vectors(scores: Tensor, batch: Batch) -> Tensor:
        mask = outputs.consolidation_mask(batch.task)
        weight = torch.ones_like(scores) if mask is None else mask.to(scores.dtype).expand_as(scores)
        return (2 * scores * weight / weight.sum(dim=1, keepdim=True).clamp(min=1))[None]

    return _average(net, batches, vectors, 1, over)


def _average(
    net: nn.Module,
    batches: Iterable[Batch],
    vectors: Callable[..., Tensor],
    power: int,
    over: ImportanceOver,
) -> Weights:
    total: Weights = {}
    count = 0
    with evaluating(net):
        for batch in batches:
            if over == "sample":
                part = sum_gradient_powers(net, batch.x, partial(vectors, batch=batch), power)
            else:
                part = _per_batch(net, batch, vectors, power)
            for name, value in part.items():
                add_to(total, name, value)
            count += len(batch.x) if over == "sample" else 1
    if not count:
        raise MethodError("no data to measure importance on: pass end_task the batches of the task just ended")
    return {name: value / count for name, value in total.items()}


def _per_batch(net: nn.Module, batch: Batch, vectors: Callable[[Tensor, Batch], Tensor], power: int) -> Weights:
    """|gradient of the batch's mean|^power; squares are weighted by the batch size, as Hsu et al. do."""
    parameters = trainable_parameters(net)
    with torch.enable_grad():
        scores = net(batch.x)
    v = vectors(scores.detach(), batch)[0] / len(batch.x)
    grads = torch.autograd.grad(scores, list(parameters.values()), v, allow_unused=True)
    weight = len(batch.x) if power == 2 else 1
    return {
        name: torch.zeros_like(p) if g is None else weight * power_of(g, power)
        for (name, p), g in zip(parameters.items(), grads, strict=True)
    }
