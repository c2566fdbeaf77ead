"""Colours, markers and matplotlib settings of every figure: for all kinds of colour vision, light and dark screens."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

INK, QUIET, GRID = "#1f2430", "#667080", "#dfe3e8"
"""Text and axes; secondary elements; grid lines."""

LIGHT_PAGE, DARK_PAGE = "#ffffff", "#14171c"
"""Backgrounds of the page's figures."""

# Hues after Okabe and Ito, shifted until each can be read as text on white (contrast 4.5) and any two differ by 10
# units of CIELAB with any kind of colour vision. Beside each, its counterpart for dark screens.
_HUES = {
    "vermillion": ("#c04a00", "#ff8f5e"),
    "blue": ("#0b4aa0", "#66aaff"),
    "green": ("#00714a", "#3fcfa2"),
    "purple": ("#ab3090", "#f284d0"),
    "sky": ("#1e7cae", "#a0e4fb"),
    "brown": ("#5e3f00", "#f1bb45"),
    "black": ("#343b47", "#dfe5ec"),
    "violet": ("#7838f8", "#8070f8"),
    "crimson": ("#c80040", "#d85870"),
    "navy": ("#001070", "#a0c0f8"),
    "maroon": ("#700020", "#f84858"),
    "orchid": ("#b038d8", "#b860c8"),
    "grey": ("#6b7480", "#98a1ad"),
}
COLOURS = tuple(light for light, _ in _HUES.values())
"""The palette on a light page; the last, grey, is that of upper bounds."""

DARK_COLOURS = dict(_HUES.values()) | {INK: "currentColor", QUIET: "#9aa4b2", GRID: "#323842"}
"""For each colour on a light page, the one on a dark page."""

_DASHES = ("-", "--", "-.")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "p", "h", ">", "d", "8")  # 13 shares no factor with 12 hues


@dataclass(frozen=True)
class Look:
    """How a series is drawn.

    Attributes:
        colour: as ``#rrggbb``.
        dash: a line style of matplotlib.
        marker: of matplotlib; empty for none.
        emphasised: in front of the others, with its label in bold.
    """

    colour: str
    dash: str
    marker: str
    emphasised: bool = False

    @property
    def weight(self) -> str:
        """Of the font of its label."""
        return "bold" if self.emphasised else "normal"

    @property
    def secondary(self) -> Look:
        """The look of a second line of the same row, such as its accuracy on the training images.

        >>> assign_looks(["BGD"])["BGD"].secondary
        Look(colour='#c04a00', dash=':', marker='', emphasised=False)
        """
        return replace(self, dash=":", marker="", emphasised=False)


UPPER_BOUND = Look(COLOURS[-1], ":", "*")
"""The look of a reference that never counts as best."""


def assign_looks(
    labels: Sequence[str], *, highlight: str | None = None, upper_bounds: Collection[str] = ()
) -> dict[str, Look]:
    """A look for each label by its position: twelve hues, then the same hues with other dashes; each is distinct.

    Args:
        labels: in the order of the rows.
        highlight: the label to emphasise, which gets the first look wherever it is in the order.
        upper_bounds: labels of references, drawn in grey.

    >>> looks = assign_looks(["SGD", "BGD", "Offline"], highlight="BGD", upper_bounds=["Offline"])
    >>> looks["BGD"].colour == COLOURS[0], looks["SGD"].colour == COLOURS[1], looks["Offline"] == UPPER_BOUND
    (True, True, True)
    >>> len(set(assign_looks([f"method {i}" for i in range(90)]).values()))
    90
    """
    ranked = sorted((label for label in labels if label not in upper_bounds), key=lambda label: label != highlight)
    hues = COLOURS[:-1]
    looks = {
        label: Look(
            hues[i % len(hues)],
            _DASHES[i // len(hues) % len(_DASHES)],
            _MARKERS[i % len(_MARKERS)],
            emphasised=label == highlight,
        )
        for i, label in enumerate(ranked)
    }
    return {label: looks.get(label, UPPER_BOUND) for label in labels}


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib's settings for the time of one figure; the caller's own are restored.

    >>> import matplotlib
    >>> with style():
    ...     matplotlib.rcParams["svg.fonttype"]
    'none'
    """
    import matplotlib as mpl

    with mpl.rc_context(
        {
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans"],
            "font.size": 9,
            "axes.labelsize": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": QUIET,
            "axes.labelcolor": INK,
            "text.color": INK,
            "xtick.color": QUIET,
            "ytick.color": QUIET,
            "xtick.labelcolor": INK,
            "ytick.labelcolor": INK,
            "axes.grid": True,
            "grid.color": GRID,
            "grid.linewidth": 0.7,
            "axes.axisbelow": True,
            "lines.linewidth": 1.7,
            "lines.markersize": 4.5,
            "legend.frameon": False,
            "figure.facecolor": LIGHT_PAGE,
            "axes.facecolor": "none",
            "savefig.facecolor": LIGHT_PAGE,
            "text.parse_math": False,  # a label may hold dollar signs
            "svg.fonttype": "none",
            "svg.hashsalt": "bgd",
        }
    ):
        yield


def contrast_ratio(a: str, b: str) -> float:
    r"""WCAG's :math:`(L_1 + 0.05) / (L_2 + 0.05)` of the relative luminances, the lighter first: 1 to 21.

    >>> round(contrast_ratio("#000000", "#ffffff"), 6)
    21.0
    """
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """WCAG's relative luminance of an sRGB colour, 0 to 1.

    >>> round(luminance("#ffffff"), 6)
    1.0
    """
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
