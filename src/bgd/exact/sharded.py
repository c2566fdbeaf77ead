"""A stream in shards: each is summed up on its own, wherever, and the sums add up to those of one machine.

A shard is a pure function of its number, so one that is lost with its worker is computed again; and the shards' sums
are added in the order of their numbers, so the result is the same bits for any number of workers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from bgd.exact import statistics
from bgd.exact.features.base import Features
from bgd.exact.head import ExactError
from bgd.exact.statistics import Statistics
from bgd.validation import check_whole

ReadShard = Callable[[int], Iterable[tuple[Tensor, Tensor]]]
"""The batches (x, targets) of a shard, by its number: the same at every call."""


def sum_shard(read: ReadShard, shard: int, features: Features, outputs: int) -> Statistics:
    """The sums of one shard.

    >>> from bgd.exact.features import Identity
    >>> sums = sum_shard(lambda i: [(torch.ones(2, 1), torch.ones(2, 1))] * i, 3, Identity((1,)), outputs=1)
    >>> float(sums.examples)
    6.0
    """
    sums = statistics.empty(features.dim, outputs)
    with torch.no_grad():
        for x, targets in read(shard):
            statistics.add_(sums, features(x), targets)
    return sums


def learn_shards(
    read: ReadShard, shards: int, features: Features, outputs: int, *, ray: bool = False, retries: int = 10
) -> Statistics:
    """The sums over all shards, in this process or on Ray; solve them with :func:`bgd.exact.statistics.solve`.

    What travels is a D x D matrix for each shard: choose shards of many more than D examples.

    Args:
        read: see :data:`ReadShard`; on Ray it runs on the workers, and must find its data there.
        shards: their number.
        features: fitted already, since all shards must share them.
        outputs: K.
        ray: on the Ray cluster that this process is connected to, or on one started on this machine.
        retries: how often a shard is computed again whose worker was lost.

    >>> from bgd.exact.features import Identity
    >>> features = Identity((1,)).fit(torch.ones(1, 1))
    >>> read = lambda i: [(torch.full((4, 1), float(i)), torch.ones(4, 1))]
    >>> float(learn_shards(read, 3, features, outputs=1).examples)
    12.0
    """
    check_whole(1, shards=shards)
    if not features.fitted:
        raise ExactError(
            "features that adapt to their first inputs must be fitted before shards share them: call fit(x)"
        )
    if ray:
        parts = _on_ray(read, shards, features, outputs, retries)
    else:
        parts = (sum_shard(read, shard, features, outputs) for shard in range(shards))
    total = statistics.empty(features.dim, outputs)
    for part in parts:
        total = statistics.merge(total, part)
    return total


def _on_ray(read: ReadShard, shards: int, features: Features, outputs: int, retries: int) -> Iterator[Statistics]:
    """The sums of the shards in the order of their numbers; each is removed from the cluster once it is added."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise ExactError(f'Ray is not installed ({error}): pip install "bgd[ray]", or leave out ray=True') from error
    task = ray.remote(num_cpus=1, max_retries=retries)(_sum_with_one_thread)
    shared = ray.put((read, features))
    waiting = [task.remote(shared, shard, outputs) for shard in range(shards)]
    while waiting:
        arrays = ray.get(waiting.pop(0))
        yield Statistics(*(torch.from_numpy(array.copy()) for array in arrays))


def _sum_with_one_thread(shared: tuple[ReadShard, Features], shard: int, outputs: int) -> list[Any]:
    torch.set_num_threads(1)  # a task has one core; and the same number gives the same bits everywhere
    read, features = shared
    return [part.numpy() for part in sum_shard(read, shard, features, outputs)]
