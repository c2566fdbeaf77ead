"""One thread for the products of a stream learner.

They are too small to share out: threads that wait for each other, on a machine that does other work too, took ten times
as long as one alone. With one thread the bits do not depend on the machine's cores either.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import scipy.linalg  # noqa: F401, it brings a library of its own, which must be there when libraries are looked for
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")


@functools.cache
def _libraries() -> ThreadpoolController:
    """Those that numpy and scipy have loaded, looked for once."""
    return ThreadpoolController()


def one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """The function, in which numpy and scipy multiply with one thread; what is set outside is set again after it.

    >>> import numpy as np
    >>> float(one_thread(np.dot)(np.ones(3), np.ones(3)))
    3.0
    """

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with _libraries().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
