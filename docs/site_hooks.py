"""What the site shows from outside of docs/: RESULTS.md as a page; links to other files become links to their names."""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
PAGES = {"RESULTS.md": "docs/results/index.md", "README.md": "docs/index.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)]*)?\)")


def on_files(files, config):
    """Add RESULTS.md, and the pictures that lie outside of docs/."""
    text = rewrite((ROOT / "RESULTS.md").read_text(), "RESULTS.md", "docs/results/index.md")
    files.append(File.generated(config, "results/index.md", content=text))
    for picture in sorted({*ROOT.glob("benchmarks/**/*.png")}):
        name = f"outside/{picture.relative_to(ROOT).as_posix()}"
        files.append(File.generated(config, name, content=picture.read_bytes()))
    return files


def on_page_markdown(markdown, page, **_):
    """Point links that leave docs/ to what the site has of it."""
    if page.file.src_uri == "results/index.md":
        return markdown
    source = f"docs/{page.file.src_uri}"
    return rewrite(markdown, source, source)


def rewrite(markdown: str, source: str, shown_as: str) -> str:
    """Links of a file of the repository, as they must be on the page that shows it."""

    def change(found):
        mark, text, target, anchor = found[1], found[2], found[3], found[4] or ""
        path = normpath(PurePosixPath(source).parent / target)
        path = PAGES.get(path, path)
        if mark and not path.startswith("docs/"):
            path = f"docs/outside/{path}"
        if not path.startswith("docs/"):
            return f"{text} (`{path}`)" if text.strip("`") != path else f"`{path}`"
        return f"{mark}[{text}]({relative(path, shown_as)}{anchor})"

    return LINK.sub(change, markdown)


def relative(path: str, start: str) -> str:
    """One path seen from the folder of another.

    >>> relative("docs/results/index.md", "docs/streams.md")
    'results/index.md'
    """
    from posixpath import relpath

    return relpath(path, PurePosixPath(start).parent.as_posix())
