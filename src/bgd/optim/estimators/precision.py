"""In which format noise is multiplied: bfloat16 where the processor has instructions for it.

A perturbed layer is y = M x + noise. The first product keeps the format of the network, and so does the gradient of M,
which is E[g]. The second is with random numbers, and needs few digits: rounding changes each by at most 2^-9 of itself,
up as often as down, which is far below what one draw differs from another.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

WORTH_CASTING = 1 << 21
"""Below so many products of two numbers, casting costs more than it saves."""


@cache
def multiplies_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 faster than float32.

    >>> multiplies_bfloat16() in (True, False)
    True
    """
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return bool(supported()) and torch._C._has_mkldnn


def in_few_digits(x: Tensor, products: int) -> Tensor:
    """An input of a noisy product in the format that it is multiplied in.

    >>> in_few_digits(torch.ones(2, 3), products=6).dtype
    torch.float32
    """
    few = x.dtype == torch.float32 and x.device.type == "cpu" and products >= WORTH_CASTING and multiplies_bfloat16()
    return x.to(torch.bfloat16) if few else x
