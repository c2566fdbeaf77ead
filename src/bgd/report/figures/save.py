"""Figures as files and as elements of the page: the same bytes for the same figure."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bgd.report.figures.style import DARK_COLOURS, INK, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def png(figure: Figure, dpi: int = 130) -> bytes:
    r"""The figure as a PNG, the same bytes every time.

    >>> from matplotlib.figure import Figure
    >>> png(Figure())[:4]
    b'\x89PNG'
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    # the canvas itself: savefig draws everything twice
    before = figure.dpi
    figure.dpi = dpi
    try:
        return _save(FigureCanvasAgg(figure).print_png, metadata={"Software": None}, pil_kwargs={"optimize": True})
    finally:
        figure.dpi = before


def svg(figure: Figure) -> str:
    """The figure as an SVG file on white; the same text every time.

    >>> from matplotlib.figure import Figure
    >>> svg(Figure()).lstrip().startswith("<?xml")
    True
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    text = _save(FigureCanvasSVG(figure).print_svg, metadata={"Date": None, "Creator": None}).decode()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))
    # tags only: a label may hold anything, but no angle bracket that is not escaped
    text = re.sub(r"<[^<>]+>", lambda tag: _shorten_tag(tag[0], used), text)
    return re.sub(r"\n\s*", "\n", text)


def inline_svg(text: str, name: str) -> str:
    """The text of :func:`svg` as an element of the page: no background, and colours that follow the page's theme.

    Every colour of the palette becomes a CSS variable (see :func:`css_colours`), ink the colour of the text. Ids of
    elements begin with ``name``, so that several figures can share a page. An artist whose gid is
    ``series:<text>`` (see :func:`bgd.report.figures.axes.set_tooltip`) shows that text as its tooltip, without any
    script.

    >>> from matplotlib.figure import Figure
    >>> inline_svg(svg(Figure()), "empty").startswith('<svg class="plot"')
    True
    """
    text = text[text.index("<svg") :].strip()
    # the background of the whole figure: the page has its own
    text = re.sub(r'<g id="patch_1">.*?</g>\s*', "", text, count=1, flags=re.DOTALL)
    text = re.sub(r"<g id=(?:\"series:([^\"]*)\"|'series:([^']*)')>", _add_tooltip, text)
    text = re.sub(r' id="([^"]+)"', rf' id="{name}-\1"', text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)
    for colour in DARK_COLOURS:
        replacement = "currentColor" if colour == INK else f"var({_css_variable(colour)})"
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
    return {_css_variable(light): value if dark else light for light, value in DARK_COLOURS.items() if light != INK}


@contextmanager
def ignore_missing_glyphs() -> Iterator[None]:
    """Silence matplotlib where its font lacks a letter: labels may be in any script, and browsers have the letters.

    >>> with ignore_missing_glyphs():
    ...     warnings.warn("Glyph 955 missing from font(s)")
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _add_tooltip(group: re.Match[str]) -> str:
    text = (group[1] or group[2]).replace('"', "&quot;")  # matplotlib has escaped all else
    return f'<g class="series"><title>{text}</title>'


def _css_variable(colour: str) -> str:
    return f"--c-{colour[1:]}"


def _shorten_tag(tag: str, used: Collection[str]) -> str:
    """A tag without ids that nothing uses, and with a tenth of a point: matplotlib writes six digits."""
    tag = re.sub(r' id="([^"]+)"', lambda found: found[0] if _keeps(found[1], used) else "", tag)
    tag = re.sub(r' (points|x|y|x1|x2|y1|y2|width|height|transform)="[^"]+"', _round_numbers, tag)
    return re.sub(r' d="[^"]+"', _shorten_path, tag)


def _keeps(name: str, used: Collection[str]) -> bool:
    """Whether an id is used by another element, or by :func:`inline_svg`: the background, and tooltips."""
    return name in used or name == "patch_1" or name.startswith("series:")


def _round_numbers(attribute: re.Match[str]) -> str:
    return re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), attribute[0])


def _shorten_path(attribute: re.Match[str]) -> str:
    """The same path without points that repeat the one before; in straight lines the command goes without saying."""
    path = " ".join(_round_numbers(attribute).split())
    return " " + re.sub(r"(?<=M )[^A-KM-Za-z\"]+", _shorten_line, path)


def _shorten_line(line: re.Match[str]) -> str:
    """The points of a straight line, after its first command."""
    numbers = line[0].replace("L", " ").split()
    points = list(zip(numbers[::2], numbers[1::2], strict=True))
    kept = [point for i, point in enumerate(points) if i == 0 or point != points[i - 1]]
    # a point drawn as a line of no length stays one
    return " ".join(f"{x} {y}" for x, y in (kept if len(kept) > 1 else points[:2])) + " "


def _save(write: Callable[..., None], **options: object) -> bytes:
    buffer = io.BytesIO()
    with style(), ignore_missing_glyphs():
        write(buffer, **options)
    return buffer.getvalue()
