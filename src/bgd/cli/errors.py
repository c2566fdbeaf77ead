"""The error of a command that was used correctly."""

from __future__ import annotations

from bgd.errors import BGDError


class FailedError(BGDError):
    """Something that was requested correctly and did not work, such as a run or a download: exit code 1.

    Every other error of the command is wrong usage, exit code 2, except for an interruption.

    >>> FailedError.exit_code
    1
    """

    exit_code = 1
