"""A window of memory: every weight is drawn back to its prior, with the strength that forgets after N examples.

After n examples the posterior q becomes q^k p^(1-k) with k = exp(-n / N) and p the prior: the precision beyond the
prior's, and what it weighs, fade by k, as in an exponential window. For Gaussians that is

    1 / std'^2 = k / std^2 + (1 - k) / std_0^2,        mean' = mean + (1 - k) (std' / std_0)^2 (mean_0 - mean).

It does not depend on how the examples are cut into batches, and no std ends above the larger of its own and the
prior's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from bgd.optim.checkpoint import StateDictError
from bgd.optim.posterior import std_init_of
from bgd.optim.update import Gaussian


@torch.no_grad()
def tether(posterior: Gaussian, prior_mean: Tensor, prior_std: float | Tensor, windows: float) -> None:
    """Draw a posterior back to its prior, in place.

    Args:
        posterior: overwritten.
        prior_mean: where the mean returns to.
        prior_std: where the std returns to.
        windows: n / N, the examples of the step in units of the window.

    >>> posterior = Gaussian(torch.tensor([1.0]), torch.tensor([0.5]))
    >>> tether(posterior, torch.tensor([0.0]), 1.0, windows=1000.0)
    >>> posterior
    Gaussian(mean=tensor([0.]), std=tensor([1.]))
    """
    mean, std = posterior
    kept, lost = math.exp(-windows), -math.expm1(-windows)
    prior = torch.as_tensor(prior_std, dtype=std.dtype, device=std.device)
    growth = torch.hypot(std / prior * math.sqrt(lost), std.new_full((), math.sqrt(kept)))
    low, high = torch.minimum(std, prior), torch.maximum(std, prior)  # rounding leaves them neither
    std.div_(growth).clamp_(low, high)
    mean.addcmul_(prior_mean - mean, (std / prior).square_(), value=lost)


def keep_prior_means(state: Mapping[Tensor, dict[str, Any]], group: Mapping[str, Any]) -> None:
    """Remember the initial means of a group that has a window.

    >>> p = torch.ones(1)
    >>> state = {p: {"mean": p, "std": p}}
    >>> keep_prior_means(state, {"params": [p], "memory": 100})
    >>> sorted(state[p])
    ['mean', 'prior_mean', 'std']
    """
    if group["memory"] is not None:
        for p in group["params"]:
            state[p]["prior_mean"] = state[p]["mean"].clone()


def prior_of(p: Tensor, state: Mapping[Tensor, dict[str, Any]], group: Mapping[str, Any]) -> tuple[Tensor, Any]:
    """The mean and std to which a parameter returns.

    >>> p = torch.ones(1)
    >>> prior_of(p, {p: {"prior_mean": p}}, {"std_init": 0.1})
    (tensor([1.]), 0.1)
    """
    if "prior_mean" not in state[p]:
        raise RuntimeError("memory was set after its group was made: give it to the optimizer, or to the new group")
    return state[p]["prior_mean"], std_init_of(p, state, group)


def check_windows(state_dict: Mapping[str, Any]) -> None:
    """Refuse a state dict in which a group has a window and no prior means to return to.

    >>> check_windows({"param_groups": [{"memory": 9, "params": [0]}], "state": {0: {}}})
    Traceback (most recent call last):
    bgd.optim.checkpoint.StateDictError: param_groups[0]['memory'] is 9, and state[0] has no 'prior_mean'. Nothing ...
    """
    for i, group in enumerate(state_dict["param_groups"]):
        for number in group["params"]:
            if group["memory"] is not None and "prior_mean" not in state_dict["state"][number]:
                memory = group["memory"]
                raise StateDictError(
                    f"param_groups[{i}]['memory'] is {memory}, and state[{number}] has no 'prior_mean'"
                )
