"""``bgd pack``: results small enough to publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bgd.experiments.comparison import FILE
from bgd.experiments.pack import pack as pack_one
from bgd.runs.types import RunError


def pack(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Of comparisons, see bgd run.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")] = Path("results"),
) -> None:
    """Put the finished runs of comparisons into two small files each, without checkpoints, to publish or to commit.

    bgd report reads them as it reads the folders of runs.
    """
    for folder in folders:
        found = sorted(path.parent for path in folder.rglob(FILE))
        if not found:
            raise RunError(f"{folder} holds no comparison (there is no {FILE}): see bgd run")
        for one in found:
            print(pack_one(one, out))
