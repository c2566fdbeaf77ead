"""The Gaussian posterior as the optimizer's state holds it: a mean and a std for each parameter.

Between steps the weights are the mean. So whatever the weights hold when a step begins, whoever wrote it, is the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

State = Mapping[Tensor, dict[str, Any]]
"""For each parameter ``mean``, ``std`` and, where it is no number of the group, ``std_init``."""


@torch.no_grad()
def read_means(params: Sequence[Tensor], state: State) -> None:
    """Set the means to the weights, on the device where these are.

    >>> p = torch.ones(1)
    >>> state = {p: {"mean": torch.zeros(1), "std": torch.ones(1)}}
    >>> read_means([p], state)
    >>> state[p]["mean"]
    tensor([1.])
    """
    plain: tuple[list[Tensor], list[Tensor]] = ([], [])
    for p in params:
        own = state[p]
        if own["mean"].device != p.device:
            for key, value in own.items():
                own[key] = value.to(p.device)
        mean = own["mean"]
        if p.dtype == mean.dtype:
            plain[0].append(mean)
            plain[1].append(p)
        else:  # rounding is no change: keep the bits that the weights do not hold
            mean.copy_(torch.where(p == mean.to(p.dtype), mean, p.to(mean.dtype)))
    if plain[0]:
        torch._foreach_copy_(*plain)


@torch.no_grad()
def write_weights(params: Sequence[Tensor], state: State, eps: Sequence[Tensor] | None) -> None:
    """Set the weights to mean + std * eps, or to the mean.

    >>> p = torch.zeros(1)
    >>> write_weights([p], {p: {"mean": torch.ones(1), "std": torch.full((1,), 0.5)}}, [torch.full((1,), 2.0)])
    >>> p
    tensor([2.])
    """
    if eps is None and params:
        torch._foreach_copy_(list(params), [state[p]["mean"] for p in params])
    for i, p in enumerate(params if eps is not None else ()):
        mean, std = state[p]["mean"], state[p]["std"]
        assert eps is not None
        if p.dtype == mean.dtype:
            torch.addcmul(mean, std, eps[i], out=p)
        else:
            p.copy_(torch.addcmul(mean, std, eps[i]))
    # autocast caches its casts of the weights until its outermost end, and would run the previous network again
    torch.clear_autocast_cache()


def std_init_of(p: Tensor, state: State, group: Mapping[str, Any]) -> float | Tensor:
    """The std with which a parameter began.

    >>> p = torch.zeros(1)
    >>> std_init_of(p, {p: {}}, {"std_init": 0.02})
    0.02
    """
    initial: float | Tensor = state[p].get("std_init", group["std_init"])
    return initial


def std_max_of(p: Tensor, state: State, group: Mapping[str, Any]) -> float | Tensor | None:
    """The ceiling of a parameter's std; None for none.

    >>> p = torch.zeros(1)
    >>> std_max_of(p, {p: {}}, {"std_init": 0.02, "std_max": "init"})
    0.02
    """
    ceiling: float | str | None = group["std_max"]
    return std_init_of(p, state, group) if isinstance(ceiling, str) else ceiling
