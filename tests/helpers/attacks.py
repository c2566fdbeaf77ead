"""How many random attacks a test makes: a few, or as many as ``BGD_ATTACKS`` says, see docs/reliability.md."""

from __future__ import annotations

import os


def attacks(small: int) -> int:
    return int(os.environ.get("BGD_ATTACKS", small))
