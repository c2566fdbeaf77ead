"""The one base class of the package's own errors: what a user can set right, said in one message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BGDError(Exception):
    """Something the user can set right: the message names the value and the way out.

    The command prints it as one line and ends with ``exit_code``; a library user catches it by this class.

    >>> raise BGDError("no data set 'mnits': did you mean 'mnist'?")
    Traceback (most recent call last):
    bgd.errors.BGDError: no data set 'mnits': did you mean 'mnist'?
    """

    exit_code: int = 1


def meant(name: str, known: Iterable[str]) -> str:
    """What was probably meant, or what there is.

    >>> meant("epoch", ["epochs", "beta"])
    "did you mean 'epochs'?"
    """
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(names)}"
