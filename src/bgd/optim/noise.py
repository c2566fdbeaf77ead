"""Standard normal noise as a pure function of (seed, step, sample).

Because nothing but these numbers decides a sample, noise can be made again instead of stored, any rank of a
distributed job can make any sample's, a resumed run continues bit for bit, and no generator but our own moves.

Three kinds, each the same on every path, loop or batched:

- ``"torch"`` draws with ``torch.Tensor.normal_``, in chunks that are seeded one by one, so that all threads can share
  the work and the result does not depend on their number. No compiler needed.
- ``"hash"`` turns a counter into normals by an integer hash and Box-Muller. Compiled it is the faster of the two, and
  the one for :meth:`bgd.BGD.batched`; without a compiler it is the slower one, and equal but for rounding.
- ``"table"`` reads from one fixed table of normals, for each tensor at an offset of its own: nearly free. Over steps
  the same numbers return at other offsets, which the signs of the one-pass estimator make harmless: it is meant for it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Literal, get_args

import torch
from torch import Tensor

from bgd.optim.compilation import CompiledOrEager

NoiseKind = Literal["torch", "hash", "table"]
KINDS: tuple[NoiseKind, ...] = get_args(NoiseKind)

CHUNK = 1 << 16
"""Elements that one seed of the ``"torch"`` kind covers on a CPU."""

WORTH_A_POOL = 8
"""Fewer chunks than this are drawn by the calling thread: waking others takes as long."""

TABLE = 1 << 22
"""Numbers in the table of the ``"table"`` kind."""

LANES = 64
"""Pairs of the ``"hash"`` kind come in multiples of this: with ragged ends the kernel that torch 2.13 compiles writes
past its output."""

_MASK64 = (1 << 64) - 1


def fold(*words: int) -> int:
    """Mix integers into one well-scrambled 64-bit key: the key of a sample from its coordinates.

    >>> fold(2019, 0, 1) == fold(2019, 0, 1) != fold(2019, 1, 0)
    True
    """
    key = 0x243F6A8885A308D3
    for word in words:
        key = (key ^ (word & _MASK64)) * 0x9E3779B97F4A7C15 & _MASK64
        key = (key ^ (key >> 32)) * 0xD6E8FEB86659FD93 & _MASK64
        key ^= key >> 29
    return key


def normal(kind: NoiseKind, keys: Sequence[int], size: int, buffer: Tensor) -> Tensor:
    """Independent N(0, 1) samples, one row of ``size`` numbers per key, of the type and on the device of ``buffer``.

    A row depends on its key and its size alone: the rows of one call equal those of several. The ``"torch"`` kind fills
    and returns the buffer, which must have the shape (len(keys), size); the ``"hash"`` kind makes a tensor of its own.

    >>> both = normal("torch", [fold(7, 0), fold(7, 1)], 5, torch.empty(2, 5))
    >>> one = normal("torch", [fold(7, 1)], 5, torch.empty(1, 5))
    >>> torch.equal(both[1], one[0])
    True
    """
    if kind == "hash":
        words = [[_int32(key), _int32(key >> 32)] for key in keys]
        pairs = -(-size // (2 * LANES)) * LANES
        made: Tensor = hashed(torch.tensor(words, dtype=torch.int32, device=buffer.device), pairs)
        return made[:, :size].to(buffer.dtype)
    chunk = CHUNK if buffer.device.type == "cpu" else max(size, 1)
    jobs = [
        (buffer[row, start : start + chunk], fold(key, start // chunk))
        for row, key in enumerate(keys)
        for start in range(0, size, chunk)
    ]
    threads = torch.get_num_threads() if buffer.device.type == "cpu" else 1
    if threads > 1 and len(jobs) >= WORTH_A_POOL:
        list(_pool(os.getpid(), threads).map(_fill, jobs))
    else:
        for job in jobs:
            _fill(job)
    return buffer


class NoiseBuffers:
    """Noise for all weights of a network, in the same memory at every call: fresh memory costs more than the writing.

    >>> weights = [torch.zeros(2, 3), torch.zeros(4)]
    >>> [eps.shape for eps in NoiseBuffers().normal("torch", [fold(7, 0), fold(7, 1)], weights)]
    [torch.Size([2, 2, 3]), torch.Size([2, 4])]
    """

    def __init__(self) -> None:
        self._buffers: dict[tuple[int, ...], Tensor] = {}

    def normal(self, kind: NoiseKind, keys: Sequence[int], like: Sequence[Tensor], keep: bool = True) -> list[Tensor]:
        """For each tensor of ``like`` one sample per key, stacked, of its shape and type and on its device.

        What is returned is good until the next call, and not to be written to. With ``keep=False`` the memory is not
        kept for that call.
        """
        if kind == "table":
            return [_from_table(keys, i, tensor) for i, tensor in enumerate(like)]
        made: dict[int, Tensor] = {}
        buckets: dict[tuple[torch.device, torch.dtype], list[int]] = {}
        for i, tensor in enumerate(like):
            buckets.setdefault((tensor.device, tensor.dtype), []).append(i)
        for number, ((device, dtype), members) in enumerate(buckets.items()):
            sizes = [like[i].numel() for i in members]
            shape = (len(keys), sum(sizes) if kind == "torch" else 0)
            buffer = self._buffers.get((number, *shape))
            if buffer is None or buffer.device != device or buffer.dtype != dtype:
                buffer = torch.empty(shape, dtype=dtype, device=device)
                if keep:
                    self._buffers[number, *shape] = buffer
            own_keys = [fold(key, number) for key in keys] if number else keys
            flat = normal(kind, own_keys, sum(sizes), buffer)
            for i, part in zip(members, torch.split(flat, sizes, dim=1), strict=True):
                made[i] = part.view(len(keys), *like[i].shape)
        return [made[i] for i in range(len(like))]


@cache
def _table(device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.randn(TABLE, generator=torch.Generator().manual_seed(20180327)).to(device, dtype)


def _from_table(keys: Sequence[int], number: int, like: Tensor) -> Tensor:
    """A row for each key, of the shape of ``like``: a view of the table where one row is enough and fits into it."""
    table, size = _table(like.device, like.dtype), like.numel()
    if len(keys) == 1 and 0 < size <= TABLE // 2:  # as below, in one operation
        return table.narrow(0, fold(keys[0], number, 0) % (TABLE - size), size).view(1, *like.shape)
    part = min(max(size, 1), TABLE // 2)
    rows = []
    for key in keys:
        starts = [fold(key, number, i) % (TABLE - part) for i in range(-(-size // part))]
        pieces = [table[start : start + part] for start in starts]
        rows.append((pieces[0] if len(pieces) == 1 else torch.cat([table[:0], *pieces]))[:size].view(like.shape))
    return rows[0].unsqueeze(0) if len(rows) == 1 else torch.stack(rows)


def _fill(job: tuple[Tensor, int]) -> None:
    part, key = job
    part.normal_(generator=torch.Generator(device=part.device).manual_seed(key))


@cache
def _pool(_process: int, threads: int) -> ThreadPoolExecutor:
    # A forked child has none of its parent's threads: the process is part of the cache's key.
    return ThreadPoolExecutor(threads, thread_name_prefix="bgd-noise")


def _int32(word: int) -> int:
    """The low 32 bits of ``word`` as a signed integer, which is what int32 tensors hold."""
    return (word + (1 << 31)) % (1 << 32) - (1 << 31)


def _scramble(h: Tensor) -> Tensor:
    """A bijection of 32-bit words in which every input bit flips every output bit about half of the time."""
    h = (h ^ (h >> 16 & 0xFFFF)) * 0x7FEB352D  # >> is arithmetic on int32: the mask makes the shift logical
    h = (h ^ (h >> 15 & 0x1FFFF)) * _int32(0x846CA68B)
    return h ^ (h >> 16 & 0xFFFF)


def _hash_normal(keys: Tensor, pairs: int) -> Tensor:
    """Box-Muller on a hashed counter: sqrt(-2 log u) cos(2 pi v) in the first half of a row, ... sin(2 pi v) behind."""
    counter = torch.arange(pairs, dtype=torch.int32, device=keys.device)
    a = _scramble(_scramble(counter * _int32(0x9E3779B9) + keys[:, :1]) ^ keys[:, 1:])
    b = _scramble(a + _int32(0x85EBCA6B))
    # 24 bits are what float32 holds exactly; half a step keeps u away from 0.
    u = (a >> 8 & 0xFFFFFF).to(torch.float32) * 2.0**-24 + 2.0**-25
    angle = (b >> 8).to(torch.float32) * (2.0**-24 * 2 * math.pi)
    radius = torch.sqrt(-2 * torch.log(u))
    # One concatenation and not two assignments, for which the compiled code would hash everything twice.
    return torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)


hashed = CompiledOrEager(_hash_normal)
"""The ``"hash"`` kind's kernel."""
