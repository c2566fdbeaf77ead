"""Write a report: the page, the tables, the figures, the numbers; each file is written atomically."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from bgd.files import write_atomically
from bgd.report import export
from bgd.report.figures.catalog import draw_plots
from bgd.report.figures.save import png, svg
from bgd.report.load import ReportError
from bgd.report.markdown import render_markdown
from bgd.report.page.render import render_page
from bgd.report.section import Section
from bgd.report.summary.types import Comparison
from bgd.report.tables.catalog import all_tables
from bgd.report.tables.render import to_text

FORMATS = ("html", "csv", "json", "txt", "md", "png", "svg")
"""All formats of a report."""
DEFAULT_FORMATS = ("html", "csv", "json")
"""Those that are written by default."""

TITLE = "Results"


def write(
    comparisons: Sequence[Comparison],
    out: str | Path,
    formats: Collection[str] = DEFAULT_FORMATS,
    *,
    command: str = "",
    title: str | None = None,
) -> list[Path]:
    """Write the report into a folder; returns the paths, the page first.

    Args:
        comparisons: see :func:`bgd.report.load`.
        out: the folder, made if need be.
        formats: some of :data:`FORMATS`.
        command: that makes the report, to be shown in it.
        title: of the page.

    Raises:
        ReportError: for an unknown format, or a folder that cannot be written.

    >>> import tempfile
    >>> [path.name for path in write([], tempfile.mkdtemp(), ["json"])]
    ['report.json']
    """
    for one in formats:
        if one not in FORMATS:
            raise ReportError(f"no format {one!r}: choose from {', '.join(FORMATS)}")
    folder = Path(out)
    drawn = bool({"html", "md", "png", "svg"} & set(formats))
    sections = [Section(c, draw_plots(c) if drawn else ()) for c in comparisons]
    writer = _Writer(folder)
    if "html" in formats:
        writer.write_text("index.html", render_page(sections, command, title))
    if "csv" in formats:
        writer.write_text("summary.csv", export.to_csv(export.summary_records(comparisons)))
        writer.write_text("runs.csv", export.to_csv(export.run_records(comparisons)))
    if "json" in formats:
        writer.write_text("report.json", export.to_json(comparisons))
    if "txt" in formats:
        writer.write_text(
            "report.txt", "\n\n".join(to_text(table) for c in comparisons for table in all_tables(c)) + "\n"
        )
    if "md" in formats:
        pictures = _write_figures(sections, writer, "figures", "png")
        writer.write_text("report.md", render_markdown(sections, command, pictures, title or TITLE))
    elif "png" in formats:
        _write_figures(sections, writer, "figures", "png")
    if "svg" in formats:
        _write_figures(sections, writer, "figures", "svg")
    return writer.written


def write_markdown(
    comparisons: Sequence[Comparison],
    file: str | Path,
    figures: str | Path | None = None,
    *,
    command: str = "",
    title: str | None = None,
) -> Path:
    """Write one Markdown file, such as a repository's RESULTS.md, and its figures as PNG.

    Args:
        comparisons: see :func:`bgd.report.load`.
        file: to write.
        figures: their folder; by default ``figures`` beside the file.
        command: that makes the file, to be shown in it.
        title: of the document.
    """
    path = Path(file)
    folder = Path(figures) if figures is not None else path.parent / "figures"
    sections = [Section(c, draw_plots(c)) for c in comparisons]
    names = _write_figures(sections, _Writer(folder), "", "png")
    relative = os.path.relpath(folder, path.parent)
    pictures = {key: (Path(relative) / name).as_posix() for key, name in names.items()}
    _Writer(path.parent).write_text(path.name, render_markdown(sections, command, pictures, title or TITLE))
    return path


class _Writer:
    """Writes files into a folder and records their paths."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[Path] = []

    def write_text(self, name: str, text: str) -> None:
        self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, content: bytes) -> None:
        path = self.folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
        except OSError as error:
            raise ReportError(f"{path}: cannot write the report ({error.strerror}): choose another --out") from error
        self.written.append(path)


def _write_figures(
    sections: Sequence[Section], writer: _Writer, folder: str, file_format: str
) -> dict[tuple[int, str], str]:
    """Write every figure; returns their paths by the section's number and the figure's name."""
    save: Callable[..., bytes] = png if file_format == "png" else lambda figure: svg(figure).encode()
    paths = {}
    used: set[str] = set()
    for number, section in enumerate(sections):
        stem = "-".join(part for part in (section.comparison.name, section.comparison.preset) if part) or "runs"
        while stem in used:  # the same experiment and preset with the user's overrides
            stem += "-x"
        used.add(stem)
        for plot in section.plots:
            name = f"{folder}/{stem}/{plot.name}.{file_format}".lstrip("/")
            writer.write_bytes(name, save(plot.figure))
            paths[number, plot.name] = name
    return paths
