"""The modules around an optimizer's parameters."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from bgd.errors import caller_stacklevel


def find_models(params: Iterable[Tensor]) -> list[nn.Module]:
    """The outermost modules alive that hold any of the parameters.

    An optimizer is given parameters, not modules. One search of the live objects finds the modules
    without help from the user, and without hooks, which would get in the way of ``torch.compile``.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    >>> find_models([model[0].weight]) == [model]
    True
    """
    wanted = set(params)
    # type() and not isinstance(), which would ask a proxy's __class__ and may run its code
    alive = [obj for obj in gc.get_objects() if issubclass(type(obj), nn.Module) and "_modules" in vars(obj)]
    parents: dict[nn.Module, list[nn.Module]] = {}
    for module in alive:
        for child in module._modules.values():
            if child is not None:
                parents.setdefault(child, []).append(module)
    ahead = [m for m in alive if any(p in wanted for p in m._parameters.values() if p is not None)]
    if gc.get_freeze_count() and not wanted <= {p for m in ahead for p in m._parameters.values()}:
        warnings.warn(
            "gc.freeze() has hidden modules that BGD needs to find: take the first step before it, or the running "
            "statistics of their BatchNorm layers move once for each sampled network",
            RuntimeWarning,
            stacklevel=caller_stacklevel(),
        )
    holders: dict[nn.Module, None] = {}
    while ahead:
        module = ahead.pop()
        if module not in holders:
            holders[module] = None
            ahead.extend(parents.get(module, ()))
    return [module for module in holders if module not in parents]


def averages_gradients(models: Iterable[nn.Module], params: Iterable[Tensor]) -> bool:
    """Whether a DistributedDataParallel wrapper of several processes averages the gradients of a parameter.

    >>> averages_gradients([nn.Linear(1, 1)], [])
    False
    """
    ours = set(params)
    wrappers = (m for model in models for m in model.modules() if isinstance(m, DistributedDataParallel))
    sharing = (m for m in wrappers if torch.distributed.get_world_size(m.process_group) > 1)
    return any(p in ours for m in sharing for p in m.parameters())
