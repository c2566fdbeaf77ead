"""Validation of BGD's arguments, with the value in the message, and their conversion to tensors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bgd.errors import caller_stacklevel
from bgd.optim.update import std_bounds
from bgd.validation import check_whole


class Rule(NamedTuple):
    """What a setting of a parameter group may be."""

    holds: Callable[[Any], bool]
    what: str


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


POSITIVE = Rule(lambda value: _number(value) and value > 0, "a positive number")
POSITIVE_OR_NONE = Rule(lambda value: value is None or POSITIVE.holds(value), "None or a positive number")
NOT_NEGATIVE = Rule(lambda value: _number(value) and value >= 0, "a finite number from 0")
DECAY = Rule(lambda value: _number(value) and 0 <= value < 1, "a number from 0 to below 1")

COMMON = ("lr", "std_init", "std_min", "std_max")
"""What a parameter group of every posterior may have of its own."""

PASSED_ON = ("params", "param_names", "name", "initial_lr", "max_lr", "min_lr", "swa_lr", "differentiable")
"""What else it may hold: torch's, its schedulers', and a name for people."""

SMALL_LR = 0.05
"""A step size below this is a habit from Adam or SGD, whose learning rates are of another kind."""

MAX_SAMPLES = 1_000_000
"""More sampled networks than this for one step are a mistake: it would not end."""

STD_OF_FAN_IN, CONVOLUTION = math.sqrt(0.5), 0.5
"""The default std in units of 1 / sqrt(fan_in), and how much of it a convolution has, whose weights act at all places
of an image at once: chosen on development streams and on seeds 2019 and 2020 of three experiments, which the study of
the default (``bgd show defaults``) does not use."""

StdInit = float | Tensor | Sequence[float] | Sequence[Tensor] | Callable[[Tensor], "float | Tensor"]


def posterior_dtype(p: Tensor) -> torch.dtype:
    """Half precision cannot hold a posterior: its steps are smaller than the weights' rounding.

    >>> posterior_dtype(torch.zeros(1, dtype=torch.bfloat16))
    torch.float32
    """
    return torch.promote_types(p.dtype, torch.float32)


def resolve_seed(seed: int | None, generator: torch.Generator | None) -> int:
    """The seed itself, one drawn from the generator, or torch's global seed, which is only read.

    >>> resolve_seed(2019, None)
    2019
    """
    if generator is not None:
        return int(torch.randint(2**62, (), generator=generator, device=generator.device))
    if seed is None:
        return torch.initial_seed()
    if not isinstance(seed, int) or seed < 0:
        raise ValueError(f"seed must be a whole number from 0, got {seed!r}")
    return seed


def fan_in_stds(params: Sequence[Tensor]) -> list[float]:
    """The default std of each parameter: 1 / sqrt(2 fan_in), and half of that for weights of more than two dimensions.

    These are convolutions. A parameter of one dimension takes the std of the last weight before it that has as many
    outputs, as its bias; or has its own size as fan-in where there is none.

    >>> fan_in_stds([torch.zeros(100, 8), torch.zeros(100), torch.zeros(6, 2, 2, 2)])
    [0.25, 0.25, 0.125]
    """
    stds = []
    outputs, last = 0, 0.0  # of the last weight
    for p in params:
        if p.dim() > 1 and p.numel():
            outputs, fan_in = p.shape[0], p.numel() // p.shape[0]
            last = STD_OF_FAN_IN / math.sqrt(fan_in) * (CONVOLUTION if p.dim() > 2 else 1.0)
        matches = p.dim() > 1 or (p.dim() == 1 and p.shape[0] == outputs)
        stds.append(last if matches and last else STD_OF_FAN_IN / math.sqrt(max(p.numel(), 1)))
    return stds


def warn_of_small_lr(groups: Sequence[dict[str, Any]]) -> None:
    """Warn of a learning rate that is meant for SGD or Adam: BGD would hardly move."""
    if small := [float(group["lr"]) for group in groups if 0 < float(group["lr"]) < SMALL_LR]:
        warnings.warn(
            f"lr={small[0]:g} scales the step of the posterior, whose own size is std^2: the weights will hardly move. "
            "Leave lr at 1, and change std_init to learn faster or slower",
            UserWarning,
            stacklevel=caller_stacklevel(),
        )


def resolve_std(std_init: StdInit | None, params: list[Tensor]) -> list[Tensor]:
    """The initial std of each parameter as a tensor of its shape.

    >>> resolve_std(lambda p: 1 / len(p), [torch.zeros(4)])
    [tensor([0.2500, 0.2500, 0.2500, 0.2500])]
    """
    values: Sequence[float | Tensor]
    if std_init is None:
        values = fan_in_stds(params)
    elif callable(std_init) and not isinstance(std_init, Tensor):
        values = [std_init(p) for p in params]
    elif isinstance(std_init, list | tuple):
        if len(std_init) != len(params):
            raise ValueError(f"std_init has {len(std_init)} tensors for {len(params)} parameters")
        values = std_init
    else:
        values = [std_init] * len(params)  # type: ignore[list-item]
    stds = []
    for p, value in zip(params, values, strict=True):
        if not p.is_floating_point():
            raise TypeError(f"BGD needs floating-point parameters, got {p.dtype}")
        try:
            precise = posterior_dtype(p)  # a number is read in it, not in float32 and then widened
            std = torch.as_tensor(value, device=p.device, dtype=precise)
            # In the layout of the weights (channels last, say): mixed layouts slow every operation on both.
            stds.append(torch.empty_like(p, dtype=std.dtype, requires_grad=False).copy_(std.detach().expand(p.shape)))
        except (RuntimeError, TypeError, ValueError) as error:
            raise ValueError(f"std_init {value!r} does not fit a parameter of shape {tuple(p.shape)}") from error
    return stds


def check_samples(count: int) -> None:
    """Refuse a number of sampled networks for which no step would end.

    >>> check_samples(10**9)
    Traceback (most recent call last):
    ValueError: mc_samples must be at most 1,000,000, got 1000000000
    """
    check_whole(1, mc_samples=count)
    if count > MAX_SAMPLES:
        raise ValueError(f"mc_samples must be at most {MAX_SAMPLES:,}, got {count}")


def check_std(group: dict[str, Any], std: Tensor) -> None:
    """Refuse an initial std that is not positive and finite, or not within its group's bounds."""
    low, high = std_bounds(std.dtype)
    if std.numel() and not bool(((std >= low) & (std <= high)).all()):
        worst = std[~((std >= low) & (std <= high))][0].item()
        raise ValueError(f"std_init must be positive and finite (from {low:.1e} to {high:.1e}), got {worst}")
    for name, sign in (("std_min", 1), ("std_max", -1)):
        bound = group[name]
        if isinstance(bound, int | float) and len(outside := std[sign * (std - bound) < 0]):
            raise ValueError(f"std_init {outside[0].item():g} lies outside {name}={bound}")


def check_group(group: dict[str, Any], rules: Mapping[str, Rule]) -> None:
    """Refuse a group's settings with an impossible value, and keys without effect.

    Args:
        group: of parameters.
        rules: for its settings beside ``lr``, ``std_init``, ``std_min`` and ``std_max``.
    """
    known = (*COMMON, *rules)
    if unknown := [key for key in group if key not in (*known, *PASSED_ON)]:
        raise ValueError(f"a group has {', '.join(known)}, not {', '.join(map(repr, unknown))}")
    lr = group["lr"]
    if not bool(torch.as_tensor(lr) >= 0) or not bool(torch.as_tensor(lr).isfinite()):
        raise ValueError(f"lr (the paper's eta) must be a finite number from 0, got {lr}")
    low, high = group["std_min"], group["std_max"]
    if low is not None and not (isinstance(low, int | float) and 0 < low < float("inf")):
        raise ValueError(f"std_min must be None or a positive number, got {low!r}")
    for name, rule in rules.items():
        if name in group and not rule.holds(group[name]):
            raise ValueError(f"{name} must be {rule.what}, got {group[name]!r}")
    if high not in (None, "init") and not (isinstance(high, int | float) and 0 < high < float("inf")):
        raise ValueError(f'std_max must be None, "init" or a positive number, got {high!r}')


def check_batch_size(reduction: str, batch_size: int | None) -> None:
    """Refuse a batch size that does not go with the reduction of the loss.

    >>> check_batch_size("mean", None)
    Traceback (most recent call last):
    ValueError: reduction="mean" needs step(..., batch_size=len(x)): the update is defined for the summed loss
    """
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if batch_size is not None and reduction == "sum":
        raise ValueError(
            'batch_size goes with BGD(..., reduction="mean"): a loss that is summed over the batch needs none'
        )
    if reduction == "mean" and batch_size is None:
        raise ValueError(
            'reduction="mean" needs step(..., batch_size=len(x)): the update is defined for the summed loss'
        )
