"""Names of folders: of a comparison, and of each of its runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from bgd.experiments.declaration import Experiment
from bgd.runs.config import RunConfig

LONGEST = 120  # characters of a folder's name: file systems allow 255 bytes


def comparison_folder(out: Path, experiment: Experiment, preset: str, overrides: Sequence[str] = ()) -> Path:
    """The folder of a comparison: one for each experiment, preset and set of overrides.

    >>> from bgd.experiments import find
    >>> comparison_folder(Path("runs"), find("digits"), "smoke").as_posix()
    'runs/digits-smoke'
    >>> comparison_folder(Path("runs"), find("digits"), "smoke", ["net.widths=[9, 9]", "sgd.lr=0.5"]).name
    'digits-smoke--net.widths=9,9--sgd.lr=0.5'
    """
    name = "--".join([f"{experiment.name}-{preset}", *map(safe_name, sorted(overrides))])
    if not overrides or (len(name) <= LONGEST and _is_reversible(overrides)):
        return out / name
    digest = hashlib.sha256("\n".join(sorted(overrides)).encode()).hexdigest()[:8]
    return out / f"{name[:LONGEST]}--{digest}"


def run_folder(comparison: Path, config: RunConfig) -> Path:
    """The folder of one run: readable, and different for every configuration.

    >>> run_folder(Path("c"), RunConfig(method="sgd", row="SGD", column="+ trick", seed=3)).name[:18]
    'trick--sgd--3--...'
    """
    return comparison / "--".join(
        filter(None, [slug(config.column), slug(config.row), str(config.seed), config.digest])
    )


def slug(label: str) -> str:
    """A label as part of a file's name.

    >>> slug("My_own: +trick")
    'my-own-trick'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in label.lower()).split())


def safe_name(text: str) -> str:
    """An override as part of a file's name: spaces, quotes, brackets and separators are removed or replaced.

    >>> safe_name("net.precision=bfloat16"), safe_name("K = 2, capped.lr=1e-3"), safe_name("data.name=/my/data")
    ('net.precision=bfloat16', 'K=2,capped.lr=1e-3', 'data.name=-my-data')
    """
    return re.sub(r"[^\w.,=+-]", "-", re.sub(r"[\s'\"\[\]{}()]", "", text))


def _is_reversible(overrides: Sequence[str]) -> bool:
    """Whether the names keep all that distinguishes these overrides from others."""
    return all(re.fullmatch(r"[\w.,=+\-\s\[\]]*", text) and "--" not in text for text in overrides)
