"""The labels trick: train only the heads of the labels that are in the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Criterion = Callable[..., Tensor]

IGNORED = -100
"""The label that torch's losses pass over by default."""


def labels_present(labels: Tensor, outputs: int) -> Tensor:
    """Which of the ``outputs`` heads have a label in the batch, as a mask.

    >>> labels_present(torch.tensor([3, 1, 3]), 5)
    tensor([False,  True, False,  True, False])
    """
    return (labels.unsqueeze(-1) == torch.arange(outputs, device=labels.device)).any(0)


def labels_trick(
    logits: Tensor,
    labels: Tensor,
    criterion: Criterion = F.cross_entropy,
    *,
    ignore_index: int = IGNORED,
    **settings: Any,
) -> Tensor:
    """A loss over the heads of the labels in the batch, instead of over all heads.

    In class learning the labels of a batch reveal its task, so that the heads of other tasks need not be trained down.
    With S the set of labels in the batch, cross-entropy becomes

        L = - sum_i log( exp(z_i[y_i]) / sum_{c in S} exp(z_i[c]) ),

    and the logits outside S have a gradient of exactly 0. A batch of one label has nothing to distinguish: loss and
    gradient are 0. So are those of an empty batch, whatever the reduction.

    Cross-entropy runs on masked logits, with shapes that do not depend on the labels: it can be mapped (``vmap``) and
    compiled. Any other criterion gets the columns of S only, with labels renumbered to match; it sees an ordinary
    problem with as many classes as S has labels.

    Args:
        logits: (N, outputs).
        labels: (N,), from 0 to outputs - 1, or ``ignore_index``.
        criterion: ``criterion(logits, labels, **settings)``; cross-entropy by default.
        ignore_index: a label that counts as absent (cross-entropy only).
        **settings: passed to the criterion: ``reduction="sum"``, ``weight``, ``label_smoothing``, ...

    Example:
        >>> loss = labels_trick(torch.zeros(2, 10), torch.tensor([3, 4]), reduction="sum")
        >>> round(float(loss / 2), 4)  # log 2: two heads, not ten
        0.6931
    """
    if logits.dim() != 2 or labels.dim() != 1 or len(logits) != len(labels):
        raise ValueError(
            "labels_trick needs logits (N, outputs) and labels (N,), "
            f"got shapes {tuple(logits.shape)} and {tuple(labels.shape)}"
        )
    if len(labels) == 0:
        return logits.sum() * 0.0
    outputs = logits.shape[1]
    _check_range(labels, outputs, ignore_index)
    if criterion is F.cross_entropy:  # the ignored label may be one of the outputs, which must not count as present
        labels = torch.where(labels == ignore_index, IGNORED, labels)
        ignore_index = IGNORED
        settings = {**settings, "ignore_index": ignore_index}
    if criterion is F.cross_entropy and not settings.get("label_smoothing"):
        present = labels_present(labels, outputs)
        absent = ~present & present.any()  # where every label is ignored, there is nothing to mask against
        return criterion(logits.masked_fill(absent, -torch.inf), labels, **settings)
    heads = torch.unique(labels[labels != ignore_index])
    if not len(heads):  # all labels are ignored
        return criterion(logits, labels, **settings)
    if settings.get("weight") is not None:
        settings = {**settings, "weight": settings["weight"][heads]}
    renumbered = torch.where(labels == ignore_index, labels, torch.searchsorted(heads, labels))
    return criterion(logits[:, heads], renumbered, **settings)


def _check_range(labels: Tensor, outputs: int, ignore_index: int) -> None:
    # Reading values would break a compiled graph and stall a GPU; there the criterion's own bounds check speaks.
    if torch.compiler.is_compiling() or labels.device.type != "cpu" or _is_mapped(labels):
        return
    wrong = labels[((labels < 0) | (labels >= outputs)) & (labels != ignore_index)]
    if len(wrong):
        raise ValueError(f"label {int(wrong[0])} is out of range: the network has {outputs} outputs")


def _is_mapped(tensor: Tensor) -> bool:
    """Whether ``vmap`` runs over the tensor, at whatever depth: its values are then many, and cannot be read."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False
