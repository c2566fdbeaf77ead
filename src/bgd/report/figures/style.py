"""How every figure looks: one palette for all kinds of colour vision, on paper, on a light and on a dark screen."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, QUIET, GRID = "#1f2430", "#667080", "#dfe3e8"
"""Text and axes; what stands back; grid lines."""

LIGHT_PAGE, DARK_PAGE = "#ffffff", "#14171c"
"""What the figures of the page stand on."""

MISSING_GLYPH = "Glyph .* missing from"
"""A warning to ignore: a label may be written in any script; a browser has the letters where matplotlib has not."""

# Okabe and Ito's hues (distinct with any colour vision), darkened until each can be read as text on white; beside
# each its sister for dark screens.
_HUES = {
    "vermillion": ("#c04a00", "#ff8f5e"),
    "blue": ("#0a63a8", "#6db5ff"),
    "green": ("#00795a", "#3fcfa2"),
    "black": ("#343b47", "#dfe5ec"),
    "amber": ("#946300", "#f1bb45"),
    "purple": ("#9a3d83", "#e693d0"),
    "sky": ("#2b83a8", "#9adcf5"),
    "grey": ("#6b7480", "#a3acb8"),
}
COLOURS = tuple(light for light, _ in _HUES.values())
"""For a sequence of things that have no look of their own."""

_DARK = dict(_HUES.values()) | {INK: "currentColor", QUIET: "#9aa4b2", GRID: "#323842"}

# The colours of the paper's own figures where it names them: BGD red, SGD blue, SI green, VCL black.
_METHODS = {
    "bgd": ("vermillion", "-", "o"),
    "sgd": ("blue", "-", "s"),
    "si": ("green", "-", "^"),
    "vcl": ("black", "-", "D"),
    "adam": ("amber", "-", "v"),
    "online ewc": ("purple", "-", "P"),
    "mas": ("sky", "-", "X"),
    "offline": ("grey", ":", "*"),
    "adagrad": ("amber", "--", "<"),
    "ewc": ("purple", "--", "p"),
    "l2": ("blue", "--", "h"),
    "lwf": ("green", "--", ">"),
    "bbb": ("black", "--", "d"),
}
_SPARE = [(hue, dash, marker) for dash, marker in (("-", "o"), ("--", "s"), ("-.", "^"), (":", "D")) for hue in _HUES]


@dataclass(frozen=True)
class Look:
    """A series' colour, dash and marker: any one of them is enough to tell it from the others."""

    colour: str
    dash: str
    marker: str


def looks(labels: Sequence[str]) -> dict[str, Look]:
    """A look for each label: a known method always has its own, others take what is left, in order.

    >>> looks(["SGD", "BGD"])["BGD"].colour == looks(["BGD"])["BGD"].colour
    True
    >>> len(set(looks([f"method {i}" for i in range(30)]).values()))
    30
    """
    chosen: dict[str, tuple[str, str, str]] = {}
    for label in labels:
        known = _METHODS.get(re.sub(r"[\s_-]+", " ", label).strip().lower())
        if known and known not in chosen.values():
            chosen[label] = known
    drawn = {(hue, dash) for hue, dash, _ in chosen.values()}
    taken = {hue for hue, _ in drawn}  # a known method's hue comes last among those of a dash
    dashes = list(dict.fromkeys(dash for _, dash, _ in _SPARE))
    spare = iter(
        sorted(
            (look for look in _SPARE if look[:2] not in drawn),
            key=lambda look: (dashes.index(look[1]), look[0] in taken),
        )
    )
    for label in labels:
        if label not in chosen:
            chosen[label] = next(spare, ("grey", "-", "."))
    return {label: Look(_HUES[chosen[label][0]][0], *chosen[label][1:]) for label in labels}


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib's settings for the time of one figure; nothing of the caller's stays changed.

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


def png(figure: Figure, dpi: int = 160) -> bytes:
    r"""The figure as a PNG, the same bytes every time.

    >>> from matplotlib.figure import Figure
    >>> png(Figure())[:4]
    b'\x89PNG'
    """
    return _save(figure, format="png", dpi=dpi, metadata={"Software": None})


def svg(figure: Figure) -> str:
    """The figure as an SVG that stands alone, on white; the same text every time.

    >>> from matplotlib.figure import Figure
    >>> svg(Figure()).lstrip().startswith("<?xml")
    True
    """
    return _save(figure, format="svg", metadata={"Date": None, "Creator": None}).decode()


def inline_svg(figure: Figure, name: str) -> str:
    """The figure as an ``<svg>`` element for the page: no background, and colours that follow the page's theme.

    Every colour of the palette becomes a CSS variable (see :func:`css_colours`), ink the colour of the text. Names
    of elements begin with ``name``, so that several figures can live on one page. An artist whose gid is
    ``series:<text>`` shows that text as its tooltip, without any script.

    >>> from matplotlib.figure import Figure
    >>> inline_svg(Figure(), "empty").startswith('<svg class="plot"')
    True
    """
    text = svg(figure)
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    # the background of the whole figure: the page has its own
    text = re.sub(r'<g id="patch_1">.*?</g>\s*', "", text, count=1, flags=re.DOTALL)
    text = re.sub(r"<g id=(?:\"series:([^\"]*)\"|'series:([^']*)')>", _with_tooltip, text)
    text = re.sub(r' id="([^"]+)"', rf' id="{name}-\1"', text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)
    for colour in _DARK:
        replacement = "currentColor" if colour == INK else f"var({_variable(colour)})"
        text = re.sub(colour, replacement, text, flags=re.IGNORECASE)
    # the family and size stay the figure's own; the page's font has much the same widths
    return re.sub(
        r'<svg [^>]*?viewBox="([^"]+)"[^>]*>',
        r'<svg class="plot" viewBox="\1" aria-hidden="true" xmlns="http://www.w3.org/2000/svg" '
        r'xmlns:xlink="http://www.w3.org/1999/xlink">',
        text,
        count=1,
    )


def css_colours(dark: bool) -> dict[str, str]:
    """The CSS variables that :func:`inline_svg` refers to, with their values.

    >>> css_colours(dark=False)["--c-c04a00"]
    '#c04a00'
    """
    return {_variable(light): value if dark else light for light, value in _DARK.items() if light != INK}


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


def _with_tooltip(group: re.Match[str]) -> str:
    text = (group[1] or group[2]).replace('"', "&quot;")  # matplotlib has escaped all else
    return f'<g class="series"><title>{text}</title>'


def _variable(colour: str) -> str:
    return f"--c-{colour[1:]}"


def _save(figure: Figure, **options: object) -> bytes:
    buffer = io.BytesIO()
    with style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=MISSING_GLYPH)
        figure.savefig(buffer, **options)  # type: ignore[arg-type]
    return buffer.getvalue()
