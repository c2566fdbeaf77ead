"""The error of runs."""

from __future__ import annotations

from bgd.errors import BGDError


class RunError(BGDError):
    """A run that cannot start, go on or be read: the message names the folder or value and the way out.

    >>> RunError.exit_code
    1
    """
