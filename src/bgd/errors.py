"""The one base class of the package's own errors: what a user can set right, said in one message."""

from __future__ import annotations


class BGDError(Exception):
    """Something the user can set right: the message names the value and the way out.

    The command prints it as one line and ends with ``exit_code``; a library user catches it by this class.

    >>> raise BGDError("no data set 'mnits': did you mean 'mnist'?")
    Traceback (most recent call last):
    bgd.errors.BGDError: no data set 'mnits': did you mean 'mnist'?
    """

    exit_code: int = 1
