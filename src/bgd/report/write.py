"""Write a report: the pages, the tables, the figures, the numbers; each file is written atomically."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bgd.report import export
from bgd.report.figures.agreement import plot_agreement
from bgd.report.figures.cache import render
from bgd.report.figures.labels import file_name
from bgd.report.figures.types import Plot
from bgd.report.files import ReportError, ReportFolder
from bgd.report.markdown import render_overview, render_section_page
from bgd.report.page.render import render_pages
from bgd.report.section import Section, by_experiment, make_sections
from bgd.report.summary.types import Comparison
from bgd.report.tables.catalog import all_tables
from bgd.report.tables.render import to_text
from bgd.report.verdicts import judge

FORMATS = ("html", "csv", "json", "txt", "md", "png", "svg")
"""All formats of a report."""
DEFAULT_FORMATS = ("html", "csv", "json")
"""Those that are written by default."""

TITLE = "Results"

PNG = b"\x89PNG"

SMALL_SVG = 24_000
"""Bytes: a figure whose SVG is larger is a PNG beside Markdown, so that a repository stays small."""


def write(
    comparisons: Sequence[Comparison],
    out: str | Path,
    formats: Collection[str] = DEFAULT_FORMATS,
    *,
    command: str = "",
    title: str | None = None,
    processes: int = 1,
) -> list[Path]:
    """Write the report into a folder; returns the paths, the page first. Old files of an earlier report are removed.

    Args:
        comparisons: see :func:`bgd.report.load`.
        out: the folder, made if need be.
        formats: some of :data:`FORMATS`.
        command: that makes the report, to be shown in it.
        title: of the page.
        processes: at most so many draw figures at the same time, see :func:`bgd.report.figures.cache.render`.

    Raises:
        ReportError: for an unknown format, or a folder that cannot be written.

    >>> import tempfile
    >>> [path.name for path in write([], tempfile.mkdtemp(), ["json"])]
    ['report.json']
    """
    for one in formats:
        if one not in FORMATS:
            raise ReportError(f"no format {one!r}: choose from {', '.join(FORMATS)}")
    folder = ReportFolder(Path(out))
    drawn = "svg" if {"html", "md", "svg"} & set(formats) else ""
    sections = make_sections(comparisons, drawn, processes)
    if "html" in formats:
        for name, text in render_pages(sections, command, title).items():
            folder.write(name, text.encode())
    if "csv" in formats:
        folder.write("summary.csv", export.to_csv(export.summary_records(comparisons)).encode())
        folder.write("runs.csv", export.to_csv(export.run_records(comparisons)).encode())
    if "json" in formats:
        folder.write("report.json", export.to_json(comparisons).encode())
    if "txt" in formats:
        text = "\n\n".join(to_text(table) for c in comparisons for table in all_tables(c))
        folder.write("report.txt", f"{text}\n".encode())
    if "md" in formats:
        pages = "pages"
        _write_pages(_small(sections, processes), folder, pages, "../report.md")
        picture = _write_central_figure(comparisons, folder, f"{pages}/figures/agreement.svg")
        folder.write("report.md", render_overview(sections, command, title or TITLE, pages, picture).encode())
    if "png" in formats:
        _write_figures(make_sections(comparisons, "png", processes), folder, "figures")
    if "svg" in formats:
        _write_figures(sections, folder, "figures")
    folder.finish()
    return folder.written


def write_markdown(
    comparisons: Sequence[Comparison],
    file: str | Path,
    pages: str | Path | None = None,
    *,
    command: str = "",
    title: str | None = None,
    processes: int = 1,
) -> Path:
    """Write a Markdown file, such as a repository's RESULTS.md, and a page for each experiment with its figures.

    Args:
        comparisons: see :func:`bgd.report.load`.
        file: to write: what became of the paper's values, and what each experiment found.
        pages: the folder of the pages; by default ``pages`` beside the file.
        command: that makes the file, to be shown in it.
        title: of the document.
        processes: see :func:`write`.
    """
    path = Path(file)
    folder = ReportFolder(Path(pages) if pages is not None else path.parent / "pages")
    sections = make_sections(comparisons, "svg", processes)
    _write_pages(_small(sections, processes), folder, "", Path(os.path.relpath(path, folder.path)).as_posix())
    picture = _write_central_figure(comparisons, folder, "figures/agreement.svg")
    folder.finish()
    relative = Path(os.path.relpath(folder.path, path.parent)).as_posix()
    shown = (picture[0], f"{relative}/{picture[1]}") if picture else None
    text = render_overview(sections, command, title or TITLE, relative, shown)
    ReportFolder(path.parent).write(path.name, text.encode())
    return path


def _write_central_figure(
    comparisons: Sequence[Comparison], folder: ReportFolder, path: str
) -> tuple[Plot, str] | None:
    """The paper's values against ours, and where that is; None where nothing can be compared."""
    for plot in plot_agreement(judge(comparisons)):
        (drawn,) = render([plot], "svg", 1)
        folder.write(path, drawn)
        return plot, path
    return None


def _small(sections: Sequence[Section], processes: int) -> list[Section]:
    """The same with PNG for figures that are large as SVG."""
    large = [plot for section in sections for plot in section.plots if len(section.drawn[plot.name]) > SMALL_SVG]
    drawn = iter(render(large, "png", processes))
    return [
        replace(one, drawn={name: next(drawn) if len(svg) > SMALL_SVG else svg for name, svg in one.drawn.items()})
        for one in sections
    ]


def _write_pages(sections: Sequence[Section], folder: ReportFolder, inside: str, home: str) -> None:
    """Write a Markdown page for each experiment, and its figures."""
    pictures = _write_figures(sections, folder, f"{inside}/figures".lstrip("/"))
    for name, own in by_experiment(sections).items():
        shown = [
            {plot: Path(os.path.relpath(path, inside or ".")).as_posix() for plot, path in pictures[id(one)].items()}
            for one in own
        ]
        folder.write(f"{inside}/{name}.md".lstrip("/"), render_section_page(own, shown, home).encode())


def _write_figures(sections: Sequence[Section], folder: ReportFolder, inside: str) -> Mapping[int, dict[str, str]]:
    """Write every figure; returns their paths by the section's identity and the figure's name."""
    paths: dict[int, dict[str, str]] = {}
    for name, own in by_experiment(sections).items():
        scales = [" ".join((one.comparison.preset, *one.comparison.overrides)) or "runs" for one in own]
        for number, section in enumerate(own):
            others = scales[:number] + scales[number + 1 :]
            stem = f"{name}-{file_name(scales[number], others)}"
            if repeated := scales[:number].count(scales[number]):  # the same experiment and preset from two folders
                stem += "-again" * repeated
            found = {
                plot: f"{inside}/{stem}/{plot}.{'png' if content[:4] == PNG else 'svg'}"
                for plot, content in section.drawn.items()
            }
            for plot, path in found.items():
                folder.write(path, section.drawn[plot])
            paths[id(section)] = found
    return paths
