"""A comparison with its figures: what the page and the Markdown document show, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bgd.report.figures.types import Plot
from bgd.report.summary.types import Comparison


@dataclass(frozen=True)
class Section:
    """A comparison with its figures."""

    comparison: Comparison
    plots: Sequence[Plot]
