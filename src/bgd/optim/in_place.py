"""The update written over the old posterior, in few passes over memory.

It is :func:`bgd.optim.update.update` to rounding. A large tensor is updated block by block, so that all that a step
reads and writes of a block stays in the cache, and factors that all weights share are folded into the operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from bgd.optim.update import Expected, Gaussian, Limits, shrink_factor, std_bounds, update

BLOCK = 1 << 17
"""Weights that a CPU updates at a time."""

Form = Literal["small", "medium", "large"]
"""How exp(-asinh x) is computed."""


def update_in_place(
    posterior: Sequence[Gaussian],
    expected: Iterable[Expected],
    limits: Sequence[Limits],
    scale: float = 1.0,
    in_stds: bool = False,
) -> None:
    """Write the next posterior over the old one.

    Args:
        posterior: overwritten.
        expected: E[g] and E[g eps] of each tensor, still to be multiplied by ``scale``.
        limits: of each tensor.
        scale: turns sums into expectations.
        in_stds: whether the second of each pair is std E[g eps], which the one-pass estimator has without a division.

    >>> posterior = Gaussian(torch.zeros(1), torch.full((1,), 0.1))
    >>> update_in_place([posterior], [(torch.ones(1), torch.zeros(1))], [Limits()])
    >>> round(float(posterior.mean), 6)
    -0.01
    """
    for old, (e_g, e_g_eps), limit in zip(posterior, expected, limits, strict=True):
        if e_g is None or e_g_eps is None:
            continue
        factor = scale * limit.weight
        for mean, std, g, g_eps, low, high in _blocks(*old, e_g, e_g_eps, limit.std_min, limit.std_max):
            here = limit._replace(std_min=low, std_max=high)
            # a tensor is kept on its device: nothing waits for its value
            if isinstance(limit.lr, Tensor) or not _fits(factor * limit.lr, limit.max_move, mean.dtype):
                wide = torch.promote_types(std.dtype, torch.float32)
                e_g, e_g_eps = g.to(wide) * scale, g_eps.to(wide) * scale  # by the weight in update
                e_g_eps = e_g_eps / std if in_stds else e_g_eps
                [new] = update([Gaussian(mean, std)], [(e_g, e_g_eps)], [here])
                mean.copy_(new.mean)
                std.copy_(new.std)
            else:
                _move_mean(mean, std, g, factor * limit.lr, limit.max_move)
                _move_std(std, g_eps if in_stds else std * g_eps, factor, here)


def _fits(step: float, max_move: float | None, dtype: torch.dtype) -> bool:
    """Whether a step can be computed in this format: it is precise enough, and holds the factors of a move."""
    largest = torch.finfo(dtype).max
    return (
        torch.finfo(dtype).eps < 1e-6 and step <= largest and (not max_move or step == 0 or max_move <= largest * step)
    )


def _move_mean(mean: Tensor, std: Tensor, g: Tensor, step: float, max_move: float | None) -> None:
    """Mean - std clip(step std g, -max_move, max_move), the step folded into the clip and the product."""
    if step == 0:
        return
    moves = std * g
    if max_move is not None:
        moves.clamp_(-max_move / step, max_move / step)
    mean.addcmul_(std, moves, value=-step)


def _move_std(std: Tensor, y: Tensor, scale: float, limit: Limits) -> None:
    """Std exp(-asinh x) for x = scale y / 2, by the cheapest form that is exact to rounding for the x at hand."""
    half, form = scale / 2, _form(y, scale / 2)
    if form == "small":  # 1 - x + x^2 / 2
        std.addcmul_(std, torch.addcmul(y, y, y, value=-half / 2), value=-half)
    elif form == "medium":  # sqrt(1 + x^2) - x, which cancels where x is large
        std.mul_(torch.addcmul(y.new_ones(()), y, y, value=half * half).sqrt_().add_(y, alpha=-half))
    else:
        std.mul_(shrink_factor(y * scale))
    low, high = std_bounds(std.dtype)
    low = max(low, limit.std_min) if isinstance(limit.std_min, int | float) else low
    high = min(high, limit.std_max) if isinstance(limit.std_max, int | float) else high
    std.clamp_(low, high)
    if isinstance(limit.std_min, Tensor):
        std.clamp_(min=limit.std_min)
    if isinstance(limit.std_max, Tensor):
        std.clamp_(max=limit.std_max)


def _form(y: Tensor, half: float) -> Form:
    """The form for these values; on other devices than a CPU the general one, so that nothing waits for a value."""
    if y.device.type != "cpu" or not y.numel():
        return "large"
    smallest, largest = (float(end) * half for end in torch.aminmax(y))
    # The series leaves out x^4 / 8, which is to be below half a unit in the last place of 1.
    if max(-smallest, largest) <= (2 * torch.finfo(y.dtype).eps) ** 0.25:
        return "small"
    return "medium" if largest <= 1 else "large"


def _blocks(mean: Tensor, *others: Any) -> Iterator[tuple[Any, ...]]:
    """Parts of tensors of one shape and layout, each small enough for the cache; numbers as they are."""
    if mean.device.type != "cpu" or mean.numel() <= BLOCK or not _one_layout(mean, others):
        yield mean, *others
        return
    flat = [t.as_strided((t.numel(),), (1,)) if isinstance(t, Tensor) and t.dim() else t for t in (mean, *others)]
    for start in range(0, mean.numel(), BLOCK):
        yield tuple(t[start : start + BLOCK] if isinstance(t, Tensor) and t.dim() else t for t in flat)


def _one_layout(mean: Tensor, others: tuple[Any, ...]) -> bool:
    tensors = [t for t in (mean, *others) if isinstance(t, Tensor) and t.dim()]
    dense = torch.empty_like(mean, device="meta").stride() == mean.stride()
    return dense and all(t.shape == mean.shape and t.stride() == mean.stride() for t in tensors)
