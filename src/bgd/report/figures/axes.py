"""What all figures share: size, title, tooltips, and a layout that is computed once."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from bgd.report.figures.save import ignore_missing_glyphs

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 4.5
"""Inches: narrow, so that the letters can be read on a phone."""


def new_axes(width: float, height: float) -> Axes:
    """The only axes of a new figure, sizes in inches; not pyplot's: nothing to close, and no window is opened.

    >>> figure_of(new_axes(4, 3)).get_size_inches().tolist()
    [4.0, 3.0]
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def figure_of(ax: Axes) -> Figure:
    """The figure that holds the axes.

    >>> figure_of(new_axes(4, 3)).axes[0].get_title()
    ''
    """
    from matplotlib.figure import Figure

    assert isinstance(ax.figure, Figure)
    return ax.figure


def set_title(figure: Figure, title: str) -> None:
    """Write the title at the left edge of the figure, where a long one has most room, wrapped if need be.

    >>> figure = figure_of(new_axes(4, 3))
    >>> set_title(figure, "Accuracy at the end")
    >>> figure.get_suptitle()
    'Accuracy at the end'
    """
    figure.suptitle("\n".join(wrap_title(title, figure.get_figwidth())), x=0.01, ha="left", size=10, weight="bold")


def wrap_title(title: str, width: float) -> list[str]:
    """The lines of a title over a figure of a width in inches.

    >>> wrap_title("Accuracy on each task at the end", 2)
    ['Accuracy on each task', 'at the end']
    """
    return textwrap.wrap(title, round(width * 11)) or [""]


def set_tooltip(artist: Artist, text: str) -> None:
    """Show a text where a pointer rests on the artist, on the page.

    >>> (line,) = new_axes(4, 3).plot([1, 2])
    >>> set_tooltip(line, "BGD: accuracy 92 at the end")
    >>> line.get_gid()
    'series:BGD: accuracy 92 at the end'
    """
    artist.set_gid(f"series:{text}")


def fix_layout(figure: Figure) -> Figure:
    """Compute the layout once and for all: saving the figure in several formats, or twice, gives the same picture.

    >>> type(fix_layout(figure_of(new_axes(4, 3))).get_layout_engine()).__name__
    'PlaceHolderLayoutEngine'
    """
    if (engine := figure.get_layout_engine()) is not None:
        with ignore_missing_glyphs():
            engine.execute(figure)
    figure.set_layout_engine("none")
    return figure


def shorten_middle(text: str, most: int) -> str:
    """Leave out the middle of a long text: names that begin alike differ at their end.

    >>> shorten_middle("permutation 12", 12)
    'permuta…n 12'
    """
    return text if len(text) <= most else f"{text[: most - 5]}…{text[-4:]}"
