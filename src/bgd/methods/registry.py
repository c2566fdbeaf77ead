"""Stand-in until the methods branch is merged, which replaces this file: methods by name."""

from __future__ import annotations

from bgd.methods import METHODS, create, settings_of
from bgd.methods import find as find_method

__all__ = ["METHODS", "create", "find_method", "settings_of"]
