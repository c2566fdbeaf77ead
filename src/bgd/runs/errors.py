"""The errors of runs."""

from __future__ import annotations

from bgd.errors import BGDError


class RunError(BGDError):
    """A run that cannot start, continue or be read: the message names the folder or value and the way out.

    >>> issubclass(RunError, BGDError)
    True
    """


class DamagedRun(RunError):
    """A file of a run that cannot be read, or has changed since it was written: it is named, with the way out."""

    exit_code = 1


class FolderInUse(RunError):
    """A folder that belongs to another run or is locked by another process: nothing may be written there."""


class Interrupted(RunError):
    """A run that was requested to stop; everything up to that iteration is saved."""

    exit_code = 130
