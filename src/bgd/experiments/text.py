"""Numbers and durations as people read them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Time in one or two units.

    >>> [duration(s) for s in (0.26, 12.4, 200, 3661, 7200, 90000)]
    ['0.3 s', '12 s', '3 min 20 s', '1 h 1 min', '2 h', '25 h']
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _two_units(whole // 60, "min", whole % 60, "s")
    minutes = round(whole / 60)
    return _two_units(minutes // 60, "h", minutes % 60, "min")


def count(n: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    >>> count(1, "seed"), count(3, "seed"), count(0, "loss", "losses")
    ('1 seed', '3 seeds', '0 losses')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _two_units(big: int, big_name: str, small: int, small_name: str) -> str:
    return f"{big} {big_name}" + (f" {small} {small_name}" if small and big < 10 else "")
