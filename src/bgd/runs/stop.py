"""Ctrl-C as a wish: the run saves first, then ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from bgd.runs.errors import RunError


class Interrupted(RunError):
    """A run that was asked to stop; everything up to that moment is saved."""

    exit_code = 130


_held: list[StopRequest] = []
"""Of the main thread, the innermost last."""


class StopRequest:
    """Whether someone asked to stop."""

    def __init__(self) -> None:
        self.stop = False


@contextmanager
def stop_requests(patient: bool = False) -> Iterator[StopRequest]:
    """Inside, SIGINT and SIGTERM set ``stop``; a second one ends at once, unless ``patient``.

    A worker is patient: its terminal and its parent may both send the same wish. Signals belong to the main thread;
    elsewhere nothing is changed. A wish that is heard inside holds for those around it as well.

    >>> import os
    >>> with stop_requests() as wish:
    ...     os.kill(os.getpid(), signal.SIGINT)
    ...     wish.stop
    True
    """
    wish = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return

    def handle(number: int, frame: FrameType | None) -> None:
        del number, frame
        if wish.stop and not patient:
            raise KeyboardInterrupt
        wish.stop = True

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    _held.append(wish)
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _held.remove(wish)
        if wish.stop and _held:
            _held[-1].stop = True
