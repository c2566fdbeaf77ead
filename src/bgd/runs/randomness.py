"""The randomness that a network draws from torch's global generators, such as dropout's.

Streams and learners have generators of their own, but a layer uses the global ones. During a run these belong to it:
seeded by its seed, saved with its checkpoints, and afterwards restored to the state in which the caller left them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from bgd.optim.noise import fold


@contextmanager
def own_randomness(seed: int, device: str = "cpu") -> Iterator[None]:
    """Inside, torch's generators of the CPU and of ``device`` are seeded by ``seed``; on exit they are as before.

    On a GPU only deterministic convolution algorithms are used.

    >>> before = torch.get_rng_state()
    >>> with own_randomness(7):
    ...     first = torch.rand(1)
    >>> with own_randomness(7):
    ...     print(torch.equal(torch.rand(1), first))
    True
    >>> torch.equal(torch.get_rng_state(), before)
    True
    """
    generators = _generators(device)
    before = [generator.get_state() for generator in generators]
    cudnn = torch.backends.cudnn
    algorithms = cudnn.deterministic, cudnn.benchmark
    try:
        cudnn.deterministic, cudnn.benchmark = True, False
        for generator in generators:
            generator.manual_seed(fold(seed, _LAYERS))  # not the seed itself, from which the weights are drawn
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark = algorithms
        for generator, state in zip(generators, before, strict=True):
            generator.set_state(state)


def generator_states(device: str = "cpu") -> list[Tensor]:
    """The states of torch's generators, for a checkpoint.

    >>> [state.dtype for state in generator_states()]
    [torch.uint8]
    """
    return [generator.get_state() for generator in _generators(device)]


def restore_generators(states: list[Tensor], device: str = "cpu") -> None:
    """Restore the states of torch's generators.

    >>> with own_randomness(7):
    ...     states, first = generator_states(), torch.rand(1)
    ...     restore_generators(states)
    ...     print(torch.equal(torch.rand(1), first))
    True
    """
    for generator, state in zip(_generators(device), states, strict=True):
        generator.set_state(state.cpu())


_LAYERS = 1  # apart from other uses of the run's seed, such as bgd.methods.common.base._LEARNER


def _generators(device: str) -> list[torch.Generator]:
    found, kind = [torch.default_generator], torch.device(device)
    if kind.type == "mps":
        found.append(torch.mps._get_default_mps_generator())
    elif kind.type not in ("cpu", "meta"):
        module = torch.get_device_module(kind)
        module.init()  # there are no generators before
        found.append(module.default_generators[module.current_device() if kind.index is None else kind.index])
    return found
