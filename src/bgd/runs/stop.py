"""SIGINT and SIGTERM as a request to stop: the run saves a checkpoint first, then ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_active: list[StopRequest] = []
"""The requests of the main thread that can be set now, the innermost last."""


class StopRequest:
    """Whether a stop was requested."""

    def __init__(self) -> None:
        self.requested = False


@contextmanager
def stop_requests(ignore_second_signal: bool = False) -> Iterator[StopRequest]:
    """Inside, SIGINT and SIGTERM set ``requested``; a second signal ends the process, unless it is ignored.

    Worker processes ignore it, since their terminal and their parent may both send one. Signals belong to the main
    thread; in other threads nothing is changed. A request received inside holds for enclosing contexts as well.

    >>> import os
    >>> with stop_requests() as stop:
    ...     os.kill(os.getpid(), signal.SIGINT)
    ...     stop.requested
    True
    """
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(number: int, frame: FrameType | None) -> None:
        del number, frame
        if stop.requested and not ignore_second_signal:
            raise KeyboardInterrupt
        stop.requested = True

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    _active.append(stop)
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _active.remove(stop)
        if stop.requested and _active:
            _active[-1].requested = True
