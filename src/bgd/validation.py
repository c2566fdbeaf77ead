"""Checks of settings that every part of the package shares: one wording, with the value in the message."""

from __future__ import annotations

import math
from collections.abc import Iterable

from bgd.errors import SettingError


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Refuse what is not one of the choices.

    >>> check_choice("over", "batches", ("sample", "batch"))
    Traceback (most recent call last):
    bgd.errors.SettingError: over='batches': choose one of sample, batch
    """
    if value not in (known := list(choices)):
        raise SettingError(f"{name}={value!r}: choose one of {', '.join(known)}")


def check_whole(least: int, **settings: int) -> None:
    """Refuse settings that are not whole numbers from ``least``.

    >>> check_whole(1, train_samples=1.5)
    Traceback (most recent call last):
    bgd.errors.SettingError: train_samples=1.5: must be a whole number from 1
    """
    for name, value in settings.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise SettingError(f"{name}={value!r}: must be a whole number from {least}")


def check_numbers(**settings: float) -> None:
    """Refuse settings that are not finite numbers from 0.

    >>> check_numbers(kl_weight=-1)
    Traceback (most recent call last):
    bgd.errors.SettingError: kl_weight=-1: must be a finite number from 0
    """
    for name, value in settings.items():
        if not 0 <= value < math.inf:
            raise SettingError(f"{name}={value}: must be a finite number from 0")
