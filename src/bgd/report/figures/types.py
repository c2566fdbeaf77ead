"""A figure of the report, with the text beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plot:
    """A figure of the report: what it says, and how to draw it.

    It is drawn when it is needed and not before: a report takes what it has drawn before from the cache, see
    :mod:`bgd.report.figures.cache`.

    Attributes:
        name: file name without its ending, unique within the comparison.
        title: of the figure.
        caption: what is drawn, in a sentence.
        alt: the content as text, for screen readers.
        draw: a function of a module with all its arguments.
        secondary: of interest to some readers only: shown on demand.
    """

    name: str
    title: str
    caption: str
    alt: str
    draw: partial[Figure]
    secondary: bool = False

    @property
    def figure(self) -> Figure:
        """Drawn anew, by matplotlib."""
        return self.draw()
