"""``bgd pack``: results small enough to publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bgd.experiments.pack import pack as pack_comparison
from bgd.experiments.storage import FILE
from bgd.runs.errors import RunError


def pack(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Of comparisons, see bgd run.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.", show_default=False)],
) -> None:
    """Put the finished runs of comparisons into small files, without checkpoints, to publish or to commit.

    Each comparison gets a folder of its name in the folder given by --out; what is packed there already stays. bgd
    report reads packed comparisons as it reads the folders of runs.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        comparisons = sorted(path.parent.resolve() for path in folder.rglob(FILE))
        if not comparisons:
            raise RunError(f"{folder} holds no comparison (there is no {FILE}): see bgd run")
        for one in comparisons:
            if found.setdefault(one.name, one) != one:
                raise RunError(
                    f"{found[one.name]} and {one} have the same name: pack them one by one, each with its own --out"
                )
    for one in found.values():
        print(pack_comparison(one, out))
