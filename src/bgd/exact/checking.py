"""What the state of a learner must be: checked whole before any of it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bgd.exact.head import ExactError


def check_state(state: Any) -> None:
    """Refuse what is no state of a learner: entries gone, of other shapes or types, or not finite.

    >>> check_state({"pending": [], "known": None, "earlier": {"mean": torch.ones(1, 1), "examples": -1.0}})
    Traceback (most recent call last):
    bgd.exact.head.ExactError: not the state of an exact learner: 'earlier' without 'known'
    """
    try:
        _check_entries(state)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = f"no entry {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise ExactError(f"not the state of an exact learner: {reason}") from error


def _check_entries(state: Mapping[str, Any]) -> None:
    known, earlier = state["known"], state["earlier"]
    for pair in state["pending"]:
        x, targets = (_finite("pending", part) for part in pair)
        if len(x) != len(targets) or targets.ndim != 2 or x.ndim < 2:
            raise ValueError(f"'pending' has inputs {tuple(x.shape)} and targets {tuple(targets.shape)}")
    if known is None:
        if earlier is not None:
            raise ValueError("'earlier' without 'known'")
        return
    if not all(type(size) is int and size > 0 for size in known["shape"]):
        raise ValueError(f"'shape' is {known['shape']}")
    for name, tensor in known["features"].items():
        _finite(name, tensor)
    cross = _check_sums(known["sums"])
    if earlier is not None:
        if _finite("mean", earlier["mean"]).shape != cross.shape:
            raise ValueError(f"'mean' is {tuple(earlier['mean'].shape)}, not {tuple(cross.shape)}")
        if not all(math.isfinite(value) and value >= 0 for name, value in earlier.items() if name != "mean"):
            raise ValueError("'earlier' has a number below 0 or none at all")


def _check_sums(sums: Sequence[Tensor]) -> Tensor:
    """Returns the second of them, whose shape is that of the weights."""
    gram, cross, square, examples = (_finite("sums", part) for part in sums)
    features, outputs = cross.shape
    shapes = [tuple(part.shape) for part in sums]
    if shapes != [(features, features), (features, outputs), (outputs,), ()]:
        raise ValueError(f"'sums' have the shapes {shapes}")
    if {part.dtype for part in sums} != {torch.float64}:
        raise ValueError("'sums' are not all float64")
    if examples < 0 or (square < 0).any() or (gram.diagonal() < 0).any():
        raise ValueError("'sums' hold a number of examples or a square below 0")
    return cross


def _finite(name: str, tensor: Any) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name!r} is a {type(tensor).__name__}, not a tensor")
    if not torch.isfinite(tensor).all():
        raise ValueError(f"{name!r} holds NaN or infinity")
    return tensor
