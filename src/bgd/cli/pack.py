"""``bgd pack``: results small enough to publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bgd.experiments.pack import pack as pack_one
from bgd.experiments.storage import FILE
from bgd.runs.errors import RunError


def pack(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Of comparisons, see bgd run.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")] = Path("results"),
) -> None:
    """Put the finished runs of comparisons into two small files each, without checkpoints, to publish or to commit.

    bgd report reads them as it reads the folders of runs.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        here = sorted(path.parent.resolve() for path in folder.rglob(FILE))
        if not here:
            raise RunError(f"{folder} holds no comparison (there is no {FILE}): see bgd run")
        for one in here:
            if found.setdefault(one.name, one) != one:
                raise RunError(f"{found[one.name]} and {one} have one name: pack them one by one, each with its --out")
    for one in found.values():
        print(pack_one(one, out))
