"""Random numbers as a pure function of where they are used, with no state to keep or to restore.

Philox is a counter-based generator: the words at any position are computed directly, so that a stream can be resumed
at any iteration. Only its raw 64-bit words are used, since numpy promises that those never change between versions,
which it does not for distributions.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from bgd.scenarios.errors import ScenarioError


class Purpose(IntEnum):
    """What random numbers are used for: each purpose has a sequence of its own under the same seed."""

    PIXELS = 1
    ORDER = 2
    BATCH = 3
    PARTNERS = 4
    AUGMENT = 5


def random_words(seed: int, purpose: Purpose, position: tuple[int, int], count: int) -> NDArray[np.uint64]:
    """Independent random 64-bit words for one position, such as a (task, epoch).

    >>> bool((random_words(7, Purpose.ORDER, (0, 3), 2) == random_words(7, Purpose.ORDER, (0, 3), 5)[:2]).all())
    True
    """
    if not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise ScenarioError(f"seed={seed} is out of range: choose a whole number from 0 to 2^64 - 1")
    key = np.array([seed, purpose], dtype=np.uint64)
    counter = np.array([0, *position, 0], dtype=np.uint64)
    raw: NDArray[np.uint64] = np.random.Philox(key=key, counter=counter).random_raw(count)
    return raw


def permutation(seed: int, purpose: Purpose, position: tuple[int, int], size: int) -> NDArray[np.intp]:
    """A random order of 0..size-1.

    >>> sorted(permutation(7, Purpose.PIXELS, (1, 0), 4).tolist())
    [0, 1, 2, 3]
    """
    return np.argsort(random_words(seed, purpose, position, size), kind="stable")


def unit(raw: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) from random words, to 53 bits.

    >>> unit(np.array([0, 2**63], dtype=np.uint64)).tolist()
    [0.0, 0.5]
    """
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53


def integers(raw: NDArray[np.uint64], n: NDArray[np.uint64] | int) -> NDArray[np.intp]:
    """Whole numbers in 0..n-1 from random words, for n below 2^32: the upper half of (upper 32 bits) x n.

    >>> integers(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64), 10).tolist()
    [0, 5, 9]
    """
    return (((raw >> np.uint64(32)) * np.asarray(n, dtype=np.uint64)) >> np.uint64(32)).astype(np.intp)
