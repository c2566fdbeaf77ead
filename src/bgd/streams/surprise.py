"""The alarm inside a learner: it takes the surprise of what is learnt, and remembers the last events."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Self

from numpy.typing import ArrayLike

from bgd.streams.checking import finite, whole
from bgd.streams.drift import WARM_UP, DriftAlarm, Event

REMEMBERED = 100


class SurpriseAlarm:
    """A :class:`bgd.streams.drift.DriftAlarm` and its last events, of constant size.

    >>> alarm = SurpriseAlarm(alarms_per=1000)
    >>> alarm.update([0.1] * 500 + [3.0] * 100)
    >>> [event.since for event in alarm.events], SurpriseAlarm.of(alarm.state_dict()).events == alarm.events
    ([500], True)
    """

    def __init__(self, alarms_per: float, events: Sequence[Event] = ()) -> None:
        self.alarm = DriftAlarm(alarms_per)
        self.events = deque(events, maxlen=REMEMBERED)

    @property
    def score(self) -> float:
        """Of the alarm."""
        return self.alarm.score

    def update(self, surprise: ArrayLike) -> None:
        """Take -log p of each row that was learnt."""
        self.events.extend(self.alarm.update_many(surprise))

    def state_dict(self) -> dict[str, Any]:
        """Everything, as numbers and lists."""
        return {"alarm": self.alarm.state_dict(), "events": [asdict(event) for event in self.events]}

    @classmethod
    def of(cls, state: dict[str, Any]) -> Self:
        """The alarm of a state dict."""
        alarm = cls(WARM_UP, [_event_of(event) for event in state["events"]])
        alarm.alarm.load_state_dict(state["alarm"])
        return alarm


def _event_of(state: dict[str, Any]) -> Event:
    event = Event(**state)
    whole("at", event.at)
    whole("since", event.since, event.at)
    finite("evidence", [event.evidence], 1)
    return event
