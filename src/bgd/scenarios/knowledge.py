"""What a scenario reveals to a learner while it trains."""

from __future__ import annotations

from enum import IntEnum


class Knowledge(IntEnum):
    """Ordered: a learner that needs less than a scenario reveals can run in it.

    >>> Knowledge.NOTHING < Knowledge.BOUNDARIES < Knowledge.TASK_ID
    True
    """

    NOTHING = 0
    BOUNDARIES = 1
    TASK_ID = 2
