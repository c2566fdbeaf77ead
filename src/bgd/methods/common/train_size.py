"""The number of training samples, by which Bayesian methods weigh the prior against the data."""

from __future__ import annotations

from bgd.methods.common.types import MethodError
from bgd.validation import check_whole


def check_train_size(
    train_size: int | list[int] | tuple[int, ...] | None, method: str, *, one: bool = False
) -> tuple[int, ...]:
    """The number of training samples, of each task or of any, as a tuple; ``one`` allows a single number only.

    >>> check_train_size(60000, "BBB")
    (60000,)
    >>> check_train_size(None, "BBB")
    Traceback (most recent call last):
    bgd.methods.common.types.MethodError: BBB weighs its prior against the data: set train_size, the number...
    """
    if train_size is None:
        raise MethodError(f"{method} weighs its prior against the data: set train_size, the number of training samples")
    sizes = tuple(train_size) if isinstance(train_size, list | tuple) else (train_size,)
    if not sizes:
        raise MethodError(f"train_size={train_size}: must name at least one task")
    for size in sizes:
        check_whole(1, train_size=size)
    if one and len(sizes) > 1:
        raise MethodError(f"train_size={train_size}: {method} takes one number, that of all training samples")
    return sizes
