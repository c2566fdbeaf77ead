"""The error of this package."""

from __future__ import annotations

from bgd.errors import BGDError


class ScenarioError(BGDError, ValueError):
    """Tasks, heads or a stream that cannot be built as configured: the message names the value and the way out.

    >>> issubclass(ScenarioError, ValueError)
    True
    """
