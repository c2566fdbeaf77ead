"""What a prediction is asked for, checked before anything is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from bgd.optim.base import PosteriorOptimizer
from bgd.optim.validation import MAX_SAMPLES
from bgd.validation import check_whole


def check_arguments(model: Any, optimizer: Any, inputs: Any, samples: int, forward: Any) -> None:
    """Refuse what is no model, optimizer, batch, or number of samples, before anything is drawn.

    >>> check_arguments(nn.Linear(2, 2), None, 7, 1, None)
    Traceback (most recent call last):
    TypeError: inputs is a int: give a batch, or an iterable of batches
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"the model is a {type(model).__name__}: give a torch.nn.Module")
    if optimizer is not None and not isinstance(optimizer, PosteriorOptimizer):
        raise TypeError(f"the optimizer is a {type(optimizer).__name__}, which has no posterior: give bgd.BGD, or None")
    if not isinstance(inputs, Iterable):
        raise TypeError(f"inputs is a {type(inputs).__name__}: give a batch, or an iterable of batches")
    if forward is not None and not callable(forward):
        raise TypeError(f"forward is a {type(forward).__name__}: give a function of a network and a batch")
    check_whole(0, samples=samples)
    if samples > MAX_SAMPLES:
        raise ValueError(f"samples must be at most {MAX_SAMPLES:,}, got {samples}")


def check_outputs(kind: str, outputs: Any) -> None:
    """Refuse what is no mask of classes.

    >>> check_outputs("classes", torch.tensor([0, 1]))
    Traceback (most recent call last):
    ValueError: outputs must be a mask (C,) of bool in which some output is True, got torch.int64 (2,)
    """
    if outputs is None:
        return
    if kind != "classes":
        raise ValueError(f'outputs chooses among classes: it goes with kind="classes", not {kind!r}')
    if not isinstance(outputs, Tensor) or outputs.dtype != torch.bool or outputs.dim() != 1 or not outputs.any():
        got = f"{outputs.dtype} {tuple(outputs.shape)}" if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ValueError(f"outputs must be a mask (C,) of bool in which some output is True, got {got}")
