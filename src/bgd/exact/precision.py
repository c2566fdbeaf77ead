"""Products by oneDNN, which may round factors to bfloat16: exact where they are bfloat16 numbers already."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_BACKENDS = (torch.backends.mkldnn.matmul, torch.backends.mkldnn.conv)  # type: ignore[attr-defined]


@contextmanager
def products(dtype: torch.dtype) -> Iterator[None]:
    """Within it, products of float32 numbers on a CPU may round their factors to ``dtype``, where that is bfloat16.

    Factors that are bfloat16 numbers already lose nothing: a product of two has 16 bits, and sums are float32. PyTorch
    then asks oneDNN, which uses bfloat16 units where a CPU has fast ones, and float32 elsewhere: on an AMD EPYC that
    alone took half the time of PyTorch's usual library. Other types change nothing.

    >>> x = torch.full((1, 1), 1 + 2**-7)  # a bfloat16 number, whose square is none
    >>> with products(torch.bfloat16):
    ...     float(x @ x) == (1 + 2**-7) ** 2
    True
    """
    before = [backend.fp32_precision for backend in _BACKENDS]
    try:
        if dtype == torch.bfloat16:
            for backend in _BACKENDS:
                backend.fp32_precision = "bf16"
        yield
    finally:
        for backend, value in zip(_BACKENDS, before, strict=True):
            backend.fp32_precision = value
