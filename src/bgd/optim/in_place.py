"""The update written over the old posterior, in few passes over memory.

It is :func:`bgd.optim.update.update` to rounding. A large tensor is updated block by block, so that all that a step
reads and writes of a block stays in the cache, and factors that all weights share are folded into the operations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from bgd.optim.update import Expected, Gaussian, Limits, shrink_factor, std_bounds, update

BLOCK = 1 << 17
"""Weights that a CPU updates at a time."""

Form = Literal["small", "medium", "large"]
"""How exp(-asinh x) is computed."""

Ends = tuple[float, float]
"""The smallest and the largest number of a tensor."""

Scratch = dict[tuple[torch.dtype, torch.device], Tensor]


def update_in_place(
    posterior: Sequence[Gaussian],
    expected: Iterable[Expected],
    limits: Sequence[Limits],
    scale: float = 1.0,
    in_stds: bool = False,
    ends: Sequence[Ends] | None = None,
) -> None:
    """Write the next posterior over the old one.

    Args:
        posterior: overwritten.
        expected: E[g] and E[g eps] of each tensor, still to be multiplied by ``scale``.
        limits: of each tensor.
        scale: turns sums into expectations.
        in_stds: whether the second of each pair is std E[g eps], which the one-pass estimator has without a division.
        ends: the smallest and the largest of these, where they are known.

    >>> posterior = Gaussian(torch.zeros(1), torch.full((1,), 0.1))
    >>> update_in_place([posterior], [(torch.ones(1), torch.zeros(1))], [Limits()])
    >>> round(float(posterior.mean), 6)
    -0.01
    """
    scratch: Scratch = {}
    for i, (old, (e_g, e_g_eps), limit) in enumerate(zip(posterior, expected, limits, strict=True)):
        if e_g is None or e_g_eps is None:
            continue
        low, high = _bound(limit.std_min), _bound(limit.std_max)
        known = ends[i] if ends is not None and in_stds and old.mean.device.type == "cpu" else None
        for mean, std, g, g_eps, here_low, here_high in _blocks(*old, e_g, e_g_eps, low, high):
            here = limit._replace(std_min=here_low, std_max=here_high)
            _update_block(Gaussian(mean, std), g, g_eps, here, scale, in_stds, known, scratch)


def _update_block(
    old: Gaussian, g: Tensor, g_eps: Tensor, limit: Limits, scale: float, in_stds: bool, ends: Ends | None,
    scratch: Scratch,
) -> None:  # fmt: skip
    mean, std = old
    factor = scale * limit.weight
    # a tensor is kept on its device: nothing waits for its value
    if isinstance(limit.lr, Tensor) or not _fits(factor * limit.lr, limit.max_move, mean.dtype):
        wide = torch.promote_types(std.dtype, torch.float32)
        e_g, e_g_eps = g.to(wide) * scale, g_eps.to(wide) * scale  # by the weight in update
        [new] = update([old], [(e_g, e_g_eps / std if in_stds else e_g_eps)], [limit])
        mean.copy_(new.mean)
        std.copy_(new.std)
        return
    room = _room(scratch, std)
    _move_mean(mean, std, g, factor * limit.lr, limit.max_move, room)
    y = g_eps if in_stds else std * g_eps
    _move_std(std, y, factor, limit, ends or _ends(y), room)


def _bound(bound: float | Tensor | None) -> float | Tensor | None:
    """A bound that all weights share, as a number where it costs no waiting."""
    return float(bound) if isinstance(bound, Tensor) and not bound.dim() and bound.device.type == "cpu" else bound


def _room(scratch: Scratch, like: Tensor) -> Tensor:
    """Memory for what is computed on the way, the same for all blocks: fresh memory costs more than the writing."""
    key = like.dtype, like.device
    if key not in scratch or scratch[key].numel() < like.numel():
        scratch[key] = torch.empty(like.numel(), dtype=like.dtype, device=like.device)
    return scratch[key].as_strided(like.shape, like.stride()) if _is_dense(like) else torch.empty_like(like)


def _fits(step: float, max_move: float | None, dtype: torch.dtype) -> bool:
    """Whether a step can be computed in this format: it is precise enough, and holds the factors of a move."""
    largest = torch.finfo(dtype).max
    return (
        torch.finfo(dtype).eps < 1e-6 and step <= largest and (not max_move or step == 0 or max_move <= largest * step)
    )


def _move_mean(mean: Tensor, std: Tensor, g: Tensor, step: float, max_move: float | None, room: Tensor) -> None:
    """Mean - std clip(step std g, -max_move, max_move), the step folded into the clip and the product."""
    if step == 0:
        return
    moves = torch.mul(std, g, out=room)
    if max_move is not None:
        moves.clamp_(-max_move / step, max_move / step)
    mean.addcmul_(std, moves, value=-step)


def _move_std(std: Tensor, y: Tensor, scale: float, limit: Limits, ends: Ends, room: Tensor) -> None:
    """Std exp(-asinh x) for x = scale y / 2, by the cheapest form that is exact to rounding for the x at hand."""
    half = scale / 2
    form = _form(ends[0] * half, ends[1] * half, std.dtype)
    if form == "small":  # 1 - x + x^2 / 2
        std.addcmul_(std, torch.addcmul(y, y, y, value=-half / 2, out=room), value=-half)
    elif form == "medium":  # sqrt(1 + x^2) - x, which cancels where x is large
        square = torch.addcmul(y.new_ones(()), y, y, value=half * half, out=room)
        std.mul_(square.sqrt_().add_(y, alpha=-half))
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


def _ends(y: Tensor) -> Ends:
    """The smallest and the largest number; on other devices than a CPU a bound, so that nothing waits for a value."""
    if y.device.type != "cpu" or not y.numel():
        return -math.inf, math.inf
    smallest, largest = torch.aminmax(y)
    return float(smallest), float(largest)


def _form(smallest: float, largest: float, dtype: torch.dtype) -> Form:
    # The series leaves out x^4 / 8, which is to be below half a unit in the last place of 1.
    if max(-smallest, largest) <= (2 * torch.finfo(dtype).eps) ** 0.25:
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
    if any(t.shape != mean.shape for t in tensors):
        return False
    return all(t.is_contiguous() for t in tensors) or (
        _is_dense(mean) and all(t.stride() == mean.stride() for t in tensors)
    )


def _is_dense(t: Tensor) -> bool:
    """Whether a tensor fills its memory, in whatever order."""
    return t.is_contiguous() or torch.empty_like(t, device="meta").stride() == t.stride()
