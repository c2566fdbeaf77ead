"""The errors that a user can set right: one message names what is wrong and the way out."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable


class BGDError(Exception):
    """Something the user can set right: the message names the value and the way out.

    The command prints it as one line and ends with ``exit_code``; a library user catches it by this class.

    >>> raise BGDError("no data set 'mnits': did you mean 'mnist'?")
    Traceback (most recent call last):
    bgd.errors.BGDError: no data set 'mnits': did you mean 'mnist'?
    """

    exit_code: int = 2


class SettingError(BGDError, ValueError):
    """A setting with a value that it cannot have.

    >>> issubclass(SettingError, ValueError)
    True
    """


class MissingExtraError(BGDError, ImportError):
    """A part of the package whose dependencies are not installed: names the extra that brings them.

    >>> MissingExtraError("pandas", "experiments")
    MissingExtraError("this needs pandas, which is not installed: pip install 'bgd[experiments]'")
    """

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"this needs {module}, which is not installed: pip install 'bgd[{extra}]'")


def suggest(name: str, known: Iterable[str]) -> str:
    """The closest known name, or all of them.

    >>> suggest("epoch", ["epochs", "beta"])
    "did you mean 'epochs'?"
    """
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(names)}"


def caller_stacklevel() -> int:
    """The stack level of the nearest frame that is neither ours nor torch's: where a warning should point.

    >>> caller_stacklevel() >= 1
    True
    """
    packages = [os.path.dirname(os.path.abspath(__file__))]
    if (file := getattr(sys.modules.get("torch"), "__file__", None)) is not None:
        packages.append(os.path.dirname(os.path.abspath(file)))
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(tuple(packages)):
        frame, level = frame.f_back, level + 1
    return level
