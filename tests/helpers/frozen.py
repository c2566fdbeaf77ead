"""Imports put aside: the hundreds of thousands of objects of torch and others, which a search of live objects would visit.

A new optimizer searches for the modules of its parameters (0.1 s each time in a process that has imported everything), and
Python's garbage collector does so too.
"""

from __future__ import annotations

import gc

_count = gc.get_freeze_count
_ours = 0


def freeze() -> None:
    """Freeze what is alive; ``gc.get_freeze_count`` then counts only what others freeze."""
    global _ours
    gc.collect()
    gc.freeze()
    _ours = _count()
    gc.get_freeze_count = lambda: max(0, _count() - _ours)
