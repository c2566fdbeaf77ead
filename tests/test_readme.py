"""The snippets and commands of the README, run as printed."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from typer.testing import CliRunner

import bgd
from bgd.cli import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_changed_training_loop_runs_and_so_does_what_follows() -> None:
    (diff,) = blocks("diff")
    changed = "\n".join(line[1:] for line in diff.splitlines() if not line.startswith("-"))
    removed = [line for line in diff.splitlines() if line.startswith("-")]
    assert len(removed) == 1, "it promises one line"
    before = "\n".join(line.lstrip(" -") if line.startswith("-") else line[1:] for line in diff.splitlines()[1:])
    assert "closure" not in before, "an ordinary loop"
    stream = [(torch.randn(8, 4), torch.randint(3, (8,))) for _ in range(3)]
    names = {"torch": torch, "F": F, "stream": stream, "Net": lambda: nn.Linear(4, 3), "bgd": bgd}
    exec(changed, names)
    assert names["optimizer"].steps == 3  # type: ignore[attr-defined]
    (after,) = blocks("python")[1:]
    x, y = stream[0]
    exec(after, names | {"x": x, "y": y})


def test_a_stream_is_learned_in_five_lines() -> None:
    pytest.importorskip("sklearn")
    rows = torch.randn(64, 4, generator=torch.Generator().manual_seed(0)).double().numpy()
    stream = [(x, (x[:, 0] > 0).astype(int)) for x in rows.reshape(8, 8, 4)]
    names = {"stream": stream}
    exec(blocks("python")[0], names)
    assert names["learner"].predict_proba(rows).shape == (64, 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "command", sorted({line.split()[1] for b in blocks("sh") for line in b.splitlines() if re.match(r"bgd \w", line)})
)
def test_the_commands_exist(command: str) -> None:
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_the_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", "\n".join(blocks("sh")), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_it_is_short() -> None:
    assert len([word for word in README.split() if re.search(r"\w", word)]) <= 700


def test_its_table_is_that_of_the_raw_results() -> None:
    file = ROOT / "benchmarks" / "readme_table.py"
    spec = importlib.util.spec_from_file_location("readme_table", file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    written = README.partition(made.START)[2].partition(made.END)[0]
    assert written == made.table(), "python benchmarks/readme_table.py --write"


def test_linked_files_exist() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_example_draws_its_picture_and_reaches_its_numbers(tmp_path: Path) -> None:
    picture = tmp_path / "two_tasks.png"
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "two_tasks.py"), "--out", str(picture), "--steps", "300"],
        capture_output=True,
        text=True,
        env={"OMP_NUM_THREADS": "1", "PATH": "", "MPLCONFIGDIR": str(tmp_path)},
        check=True,
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    kept = {line.split()[0]: float(line.split()[2].rstrip("%")) for line in done.stdout.splitlines()[1:3]}
    assert kept["BGD"] > kept["SGD"] + 15


def test_the_experiments_of_the_documentation_are_valid(tmp_path: Path) -> None:
    declared = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "experiments.md").read_text(), re.DOTALL)
    for text, title in zip(declared, ("My drifting digits", "Rain"), strict=True):
        file = tmp_path / "mine.toml"
        file.write_text(text)
        shown = CliRunner().invoke(app, ["show", str(file)])
        assert shown.exit_code == 0, shown.output
        assert title in shown.output


def test_the_table_of_the_documentation_runs(tmp_path: Path) -> None:
    declared = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "experiments.md").read_text(), re.DOTALL)[1]
    (tmp_path / "rain.toml").write_text(declared)
    rows = [f"{i % 7},{'grey' if i % 3 else 'blue'},{'yes' if i % 7 > 3 else 'no'}\n" for i in range(60)]
    (tmp_path / "weather.csv").write_text("wind,sky,rain\n" + "".join(rows))
    done = CliRunner().invoke(app, ["run", str(tmp_path / "rain.toml"), "--jobs", "1", "--out", str(tmp_path / "runs")])
    assert done.exit_code == 0, done.output
    assert "adaptive random forest" in done.output
