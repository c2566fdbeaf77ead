"""Imports put aside: the many objects of torch and others, which every search of live objects would visit.

A new optimizer searches for the modules of its parameters, and the garbage collector for cycles. In a process that has
imported everything, that takes 0.1 and 0.3 s each time.
"""

from __future__ import annotations

import gc

count = gc.get_freeze_count


def freeze() -> None:
    """Freeze what is alive; an optimizer, which warns where modules may be frozen, does not learn of it."""
    gc.collect()
    gc.freeze()
    gc.get_freeze_count = lambda: 0
