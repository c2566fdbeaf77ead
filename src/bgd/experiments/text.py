"""Numbers and durations as people read them."""

from __future__ import annotations


def count(n: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "run"), count(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def duration(seconds: float) -> str:
    """Time in the one or two units that matter.

    >>> [duration(s) for s in (0.26, 12.4, 200, 3661, 7200, 90000)]
    ['0.3 s', '12 s', '3 min 20 s', '1 h 1 min', '2 h', '25 h']
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    large, small, units = (*divmod(whole, 60), ("min", "s"))
    if whole >= 3600:
        large, small, units = (*divmod(round(whole / 60), 60), ("h", "min"))
    return f"{large} {units[0]}" + (f" {small} {units[1]}" if small and large < 10 else "")
