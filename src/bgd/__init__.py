"""Learn from data that changes over time, without forgetting and without being told when it changes."""

from bgd._version import __version__

__all__ = ["__version__"]
