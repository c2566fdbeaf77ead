import csv
import json
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bgd.cli import app
from bgd.errors import MissingExtraError
from bgd.report.files import ReportError

run = CliRunner(env={"COLUMNS": "200"}).invoke
ROWS = ["BGD", "SGD"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> Path:
    """A real comparison of the smallest scale: two methods, two seeds."""
    out = tmp_path_factory.mktemp("runs")
    options = ["--row", "BGD", "--row", "SGD", "--column", "fading tasks", "--seeds", "2019,2020"]
    options += ["--executor", "serial"]
    result = run(app, ["run", "digits", "--preset", "smoke", "--out", str(out), "--quiet", *options])
    assert result.exit_code == 0, result.output
    return out / "digits-smoke"


@pytest.fixture
def folder(ran, tmp_path) -> Path:
    """A copy to change."""
    return shutil.copytree(ran, tmp_path / "digits-smoke")


def call(*arguments: object):
    result = run(app, [str(one) for one in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def one_run(folder: Path, row: str, seed: int) -> Path:
    (found,) = folder.glob(f"*--{row.lower()}--{seed}--*")
    return found


def test_prints_tables_and_writes_the_page(folder):
    out = call("report", folder).output
    for text in [*ROWS, "ours, %", "seeds", "time a run"]:
        assert text in out
    page = folder / "report" / "index.html"
    assert Path(out.strip().splitlines()[-1]) == page.resolve()
    assert page.read_text().count("<figure") >= 5
    assert sorted(path.name for path in page.parent.iterdir()) == [
        ".bgd-report",
        "index.html",
        "report.json",
        "runs.csv",
        "summary.csv",
    ]


def test_of_many_comparisons_the_terminal_shows_what_each_found(ran, tmp_path):
    for name in "abcd":
        shutil.copytree(ran, tmp_path / name / "digits-smoke")
    out = call("report", tmp_path, "--out", tmp_path / "report").output
    assert out.count("A smoke test: 4 runs") == 4
    assert "time a run" not in out
    assert "digits (smoke), 4" in out


def test_numbers_are_those_of_the_runs(folder, tmp_path):
    call("report", folder, "--out", tmp_path / "out", "--quiet")
    with (tmp_path / "out" / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        result = json.loads((one_run(folder, row["row"], int(row["seed"])) / "result.json").read_text())
        assert float(row["accuracy"]) == pytest.approx(100 * result["average_accuracy"], abs=1e-5)
    summary = {row["row"]: row for row in json.loads((tmp_path / "out" / "report.json").read_text())["summary"]}
    values = [float(row["accuracy"]) for row in rows if row["row"] == "BGD"]
    assert len(values) == summary["BGD"]["runs"] == 2
    assert summary["BGD"]["mean"] == pytest.approx(sum(values) / 2, abs=1e-5)
    assert summary["BGD"]["spread"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5, abs=1e-5)


def test_all_formats_the_same_bytes_each_time(folder, tmp_path):
    made = []
    for name in ("one", "two"):
        call("report", folder, "--out", tmp_path / name, "--format", "all", "--quiet")
        files = {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob("*") if p.is_file()}
        made.append(files)
    assert made[0] == made[1]
    assert {path.suffix for path in made[0]} - {""} == {".html", ".csv", ".json", ".txt", ".md", ".png", ".svg"}


def test_markdown_for_a_repository(folder, tmp_path):
    file = tmp_path / "RESULTS.md"
    options = ["--markdown", file, "--pages", tmp_path / "docs" / "results", "--title", "Our results"]
    call("report", folder, *options)
    text = file.read_text()
    assert text.startswith("# Our results\n")
    assert "](docs/results/digits.md)" in text
    page = tmp_path / "docs" / "results" / "digits.md"
    pictures = [line.split("](")[1].split(")")[0] for line in page.read_text().splitlines() if line.startswith("![")]
    assert pictures
    for picture in pictures:
        assert (page.parent / picture).read_bytes().startswith((b"\x89PNG", b"<?xml"))
        assert picture.startswith("figures/digits-smoke/")
    assert not (folder / "report").exists()
    before = {path: path.read_bytes() for path in (file, page)}
    call("report", folder, *options)
    assert {path: path.read_bytes() for path in (file, page)} == before


def test_missing_runs_are_reported(folder):
    unfinished, failed = one_run(folder, "SGD", 2020), one_run(folder, "BGD", 2019)
    (unfinished / "result.json").unlink()
    (failed / "result.json").unlink()
    (failed / "failure.txt").write_text("Traceback (most recent call last):\nMemoryError: too <large>\n")
    out = call("report", folder).output
    assert "not complete: 2 of 4 runs missing, 1 failed" in out
    assert "1 of 2 (2020), 1 failed" in out
    page = (folder / "report" / "index.html").read_text()
    assert "MemoryError: too &lt;large&gt;" in page
    assert "SGD, fading tasks, seed 2020: not finished" in page


def test_a_folder_above_and_runs_without_a_declaration(folder, tmp_path):
    above = json.loads(call("report", tmp_path, "--json", "--out", tmp_path / "out").stdout)
    (folder / "experiment.json").unlink()
    loose = json.loads(call("report", folder, "--json", "--out", tmp_path / "out").stdout)
    assert above == loose
    assert len(above["runs"]) == 4


def test_runs_with_other_settings_are_never_averaged(folder):
    (folder / "experiment.json").unlink()
    path = one_run(folder, "SGD", 2020) / "result.json"
    result = json.loads(path.read_text())
    result["config"]["settings"]["lr"] = 0.5
    path.write_text(json.dumps(result))
    (path.parent / "SHA256SUMS").unlink(missing_ok=True)  # or the change is noticed
    outcome = run(app, ["report", str(folder)])
    assert isinstance(outcome.exception, ReportError)
    assert "different settings" in str(outcome.exception)


def test_compare_with_itself_and_with_a_change(folder, ran, tmp_path):
    same = json.loads(call("compare", ran, folder, "--json").stdout)
    assert [pair["difference"]["value"] for pair in same[0]["pairs"]] == [0, 0]
    before = shutil.copytree(ran, tmp_path / "before")  # two seeds that are close, or nothing is beyond chance
    for where, accuracies in ((before, (0.5, 0.502)), (folder, (0.9, 0.9))):
        for seed, accuracy in zip((2019, 2020), accuracies, strict=True):
            path = one_run(where, "SGD", seed) / "result.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"average_accuracy": accuracy}))
            (path.parent / "SHA256SUMS").unlink(missing_ok=True)  # or the change is noticed
    shutil.rmtree(one_run(folder, "BGD", 2019))
    shutil.rmtree(one_run(folder, "BGD", 2020))
    pairs = {pair["row"]: pair for pair in json.loads(call("compare", before, folder, "--json").stdout)[0]["pairs"]}
    sgd = pairs["SGD"]
    assert sgd["verdict"] == "B is higher"
    assert sgd["difference"]["value"] == pytest.approx(90 - sgd["a"]["mean"])
    assert sgd["difference"]["standard_error"] == pytest.approx(sgd["a"]["spread"] / 2**0.5)
    assert pairs["BGD"]["verdict"] == "only in A"
    table = call("compare", before, folder).output
    assert "B is higher" in table
    assert str(before) in table
    assert call("compare", ran, folder, "--markdown").output.startswith("| method |")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "no-such-folder"], "no such folder"),
        (["report", "{empty}"], "no runs"),
        (["compare", "{empty}", "{empty}"], "no runs"),
        (["report", "{ran}", "--out", "{file}/out"], "choose another --out"),
    ],
)
def test_errors_are_one_line(arguments, message, ran, tmp_path):
    paths = {"empty": tmp_path / "empty", "file": tmp_path / "file", "ran": ran}
    paths["empty"].mkdir()
    paths["file"].write_text("")
    outcome = run(app, [argument.format(**paths) for argument in arguments])
    assert isinstance(outcome.exception, ReportError)
    assert message in str(outcome.exception)


def test_wrong_usage(ran):
    assert run(app, ["report", str(ran), "--format", "pdf"]).exit_code == 2
    assert run(app, ["report", str(ran), "--pages", "x"]).exit_code == 2


@pytest.mark.parametrize("instead", ["--markdown", "--tensorboard"])
@pytest.mark.parametrize("unused", [["--out", "elsewhere"], ["--format", "csv"]])
def test_options_without_effect_are_rejected(ran, tmp_path, instead, unused):
    result = run(app, ["report", str(ran), instead, str(tmp_path / "elsewhere"), *unused])
    assert result.exit_code == 2
    assert f"cannot be combined with {instead}" in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())


def test_a_missing_tensorboard_is_named(ran, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    outcome = run(app, ["report", str(ran), "--tensorboard", str(tmp_path)])
    assert isinstance(outcome.exception, MissingExtraError)
    assert "pip install 'bgd[tensorboard]'" in str(outcome.exception)


def test_tensorboard_files(ran, tmp_path):
    pytest.importorskip("tensorboard", reason="the package tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert "4 runs" in call("report", ran, "--tensorboard", tmp_path).output
    (events,) = tmp_path.rglob("*bgd--2019--*/events*")
    found = EventAccumulator(str(events.parent)).Reload()
    result = json.loads((one_run(ran, "BGD", 2019) / "result.json").read_text())
    assert found.Scalars("accuracy/all tasks")[-1].value == pytest.approx(result["average_accuracy"])
    assert len(found.Scalars("training loss")) == len(result["curve"])


def test_a_damaged_result_is_named_and_hides_no_other(folder):
    path = one_run(folder, "SGD", 2020) / "result.json"
    path.write_bytes(b"")
    out = call("report", folder).output
    assert "BGD" in out
    summary = json.loads(call("report", folder, "--json").stdout)
    assert len(summary["runs"]) == 3
    assert "result.json" in (folder / "report" / "index.html").read_text()
