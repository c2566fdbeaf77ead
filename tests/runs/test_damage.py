"""Files of runs and comparisons that have changed since they were written: noticed, named, never a traceback."""

import contextlib
import io
import json
import os
import random
import shutil
import signal
from pathlib import Path

import pytest
from attacks import attacks
from mutations import damages, wrong_shapes
from small_runs import RUNS

from bgd.cli import main
from bgd.experiments.storage import read_comparison
from bgd.runs import Interrupted, Options, RunError, run
from bgd.runs.digests import FILE
from bgd.runs.folder import read_result

CONFIG = RUNS["bgd, one pass"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    run(CONFIG, folder)
    return folder


@pytest.fixture(scope="module")
def comparison(tmp_path_factory) -> Path:
    """A comparison as ``bgd run`` makes it, and packed beside it."""
    out = tmp_path_factory.mktemp("comparisons")
    options = ["--column", "fading tasks", "--row", "SGD", "--row", "Adam", "--executor", "serial", "-q"]
    assert call("run", "digits", "--preset", "smoke", "--out", out, *options)[0] == 0
    assert call("pack", out / "digits-smoke", "--out", out / "packed")[0] == 0
    return out


def call(*arguments: object) -> tuple[int, str]:
    """Exit code and stderr of a command; any exception but SystemExit is the test's failure."""
    with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()):
        try:
            main([str(one) for one in arguments])
        except SystemExit as ended:
            return int(ended.code or 0), errors.getvalue()
    return 0, errors.getvalue()


@pytest.mark.parametrize("name", ["result.json", "metrics.jsonl", "environment.json", "config.json"])
def test_every_changed_byte_of_a_finished_run_is_noticed_and_named(name, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    content = (folder / name).read_bytes()
    for i, mutant in enumerate(damages(content, random.Random(name), attacks(30))):
        if mutant == content:
            continue
        (folder / name).write_bytes(mutant)
        with pytest.raises(RunError, match=rf"{name} has changed since the run ended: restore it, or remove") as caught:
            read_result(folder)
        assert caught.value.exit_code == 1, i


def test_a_file_that_is_gone_and_digests_that_are_damaged(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "metrics.jsonl").unlink()
    with pytest.raises(RunError, match=r"metrics\.jsonl is missing"):
        read_result(folder)
    shutil.copy(finished / "metrics.jsonl", folder)
    sums = (folder / FILE).read_bytes()
    for mutant in damages(sums, random.Random(3), attacks(60)):
        if mutant.split() == sums.split() or mutant == sums + sums:
            continue  # a line break, or each line twice
        (folder / FILE).write_bytes(mutant)
        with pytest.raises(RunError, match=r"has changed since|is missing|is no list of digests"):
            read_result(folder)


def test_a_result_of_a_version_without_digests_is_read(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / FILE).unlink()
    assert read_result(folder) == read_result(finished)


def test_the_way_out_of_a_damaged_result_gives_the_same_bytes(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "result.json").write_bytes(b"{}")
    code, error = call("resume", folder)
    assert (code, error.count("\n")) == (1, 1)
    assert f"remove {folder / 'result.json'} and run again with: bgd resume {folder}" in error
    (folder / "result.json").unlink()
    assert call("resume", folder, "-q", "--executor", "serial")[0] == 0
    for name in ("result.json", "metrics.jsonl"):
        assert (folder / name).read_bytes() == (finished / name).read_bytes()


def test_a_configuration_that_changes_in_the_middle_of_a_run_is_noticed(tmp_path):
    def interrupt(progress):
        if progress.iteration > 10:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        run(CONFIG, tmp_path, Options(checkpoint_seconds=0), interrupt)
    changed = CONFIG.model_copy(update={"seed": 6})
    (tmp_path / "config.json").write_text(changed.model_dump_json())
    with pytest.raises(RunError, match=r"config\.json has changed since the last checkpoint"):
        run(changed, tmp_path)


FILES = ("experiment.json", "config.json", "environment.json", "result.json", "metrics.jsonl", "runs.jsonl")


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_wrong_shape_is_one_line_that_names_it(name, comparison, tmp_path):
    folder = shutil.copytree(comparison / "digits-smoke", tmp_path / "digits-smoke")
    packed = shutil.copytree(comparison / "packed" / "digits-smoke", tmp_path / "packed")
    shown = packed if name == "runs.jsonl" else folder
    path = next(p for p in sorted(shown.rglob(name)))
    content, pick = path.read_bytes(), random.Random(name)
    first, *rest = content.split(b"\n", 1) if name.endswith("jsonl") else (content,)
    count = attacks(12)
    for mutant in (*wrong_shapes(first, pick, count), *damages(first, pick, count // 3)):
        path.write_bytes(b"\n".join((mutant, *rest)))
        report = ("report", shown, "--format", "json", "--out", tmp_path / "report", "--json", "-q")
        commands = [report, ("resume", shown, "-q", "--executor", "serial")] if shown is folder else [report]
        for command in commands:
            code, error = call(*command)
            assert code in (0, 1, 2), error
            if code:
                assert error.count("\n") == 1, error
                assert str(path) in error or str(path.parent) in error, error
        if name in ("result.json", "metrics.jsonl") and mutant != first:
            assert list(read_comparison(folder).damaged) == [path.parent]
            assert call("pack", folder, "--out", tmp_path / "again")[0] == 1


def test_remarks_that_are_no_text_do_not_stop_a_report(comparison, tmp_path):
    folder = shutil.copytree(comparison / "digits-smoke", tmp_path / "digits-smoke")
    (folder / "remarks.md").write_bytes(b"\xff\xfe broken")
    assert call("report", folder, "--format", "json", "-q")[0] == 0


def test_a_folder_in_the_place_of_a_file_is_named(comparison, tmp_path):
    folder = shutil.copytree(comparison / "digits-smoke", tmp_path / "digits-smoke")
    config = next(folder.glob("*/config.json"))
    config.unlink()
    config.mkdir()
    code, error = call("report", folder, "-q")
    assert (code, error.count("\n")) == (1, 1)
    assert str(config) in error
    assert json.loads((folder / "experiment.json").read_text())
