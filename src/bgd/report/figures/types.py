"""A figure of the report, with the text beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plot:
    """A figure of the report.

    Attributes:
        name: file name without its ending, unique within the comparison.
        title: of the figure.
        caption: what is drawn, in a sentence.
        alt: the content as text, for screen readers.
        figure: matplotlib's.
        small: one of many of its kind, shown side by side.
    """

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure
    small: bool = False
