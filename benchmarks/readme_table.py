"""The table of the README, from the raw results of the demo.

bgd run digits --preset paper --out demo && bgd pack demo --out results
python benchmarks/readme_table.py --write
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from bgd.experiments import find
from bgd.experiments.builtin.digits import TUNED
from bgd.experiments.storage import read_comparison

ROOT = Path(__file__).parent.parent
START, END = "<!-- made by benchmarks/readme_table.py -->\n", "<!-- end -->\n"


def table(folder: Path = ROOT / "results" / "digits-paper") -> str:
    """Rows and columns of the demo: mean ± standard deviation over seeds, in percent; the best of a column in bold."""
    experiment = find("digits")
    found: dict[tuple[str, str], list[float]] = {}
    for result in read_comparison(folder).results:
        found.setdefault((result.config.row, result.config.column), []).append(100 * result.average_accuracy)
    (seeds,) = {len(values) for values in found.values()}
    means = {cell: statistics.fmean(values) for cell, values in found.items()}
    best = {column: max(means[cell] for cell in means if cell[1] == column) for column in experiment.columns}

    def cell(row: str, column: str) -> str:
        if (values := found.get((row, column))) is None:
            return ""
        text = f"{means[row, column]:.1f} ± {statistics.stdev(values):.1f}"
        return f"**{text}**" if means[row, column] == best[column] else text

    names = {row: f"{row}, tuned" if row in TUNED and not row.endswith("tuned") else row for row in experiment.rows}
    lines = [[f"{seeds} seeds", *experiment.columns], ["---"] * (1 + len(experiment.columns))]
    lines += [[names[row], *(cell(row, column) for column in experiment.columns)] for row in experiment.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Print the table, or write it into the README."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="into README.md")
    if not parser.parse_args().write:
        print(table(), end="")
        return
    file = ROOT / "README.md"
    before, _, rest = file.read_text(encoding="utf-8").partition(START)
    file.write_text(f"{before}{START}{table()}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
