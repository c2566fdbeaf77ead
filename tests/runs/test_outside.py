"""What the world around a run may do to it: the folder goes, the clock jumps, others come, the parent dies."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_runs import RUNS
from workers import CONTEXT

from bgd.runs import Options, RunError, run
from bgd.runs.executors import Job, attempt
from bgd.runs.folder import finished

CONFIG = RUNS["bgd, one pass"]
ALWAYS = Options(checkpoint_seconds=0)


def test_a_folder_that_is_removed_in_mid_run_is_one_clear_error(tmp_path):
    folder = tmp_path / "run"

    def remove(progress):
        if progress.iteration > 10:
            shutil.rmtree(folder, ignore_errors=True)

    with pytest.raises(RunError, match=rf"^{folder}: cannot write here \(No such file or directory\)"):
        run(CONFIG, folder, ALWAYS, remove)
    assert run(CONFIG, folder).iterations == 40


def test_a_clock_that_jumps_changes_no_result(tmp_path, monkeypatch):
    run(CONFIG, tmp_path / "steady")
    jumps = iter(range(10**6))
    monkeypatch.setattr(time, "time", lambda: 1e9 * (next(jumps) % 3))  # back and forth by decades
    run(CONFIG, tmp_path / "jumping", ALWAYS)
    for name in ("result.json", "metrics.jsonl"):
        assert (tmp_path / "steady" / name).read_bytes() == (tmp_path / "jumping" / name).read_bytes()


def _note(folder: Path, number: int) -> None:
    outcome = attempt(Job(CONFIG, folder, ALWAYS))
    (folder.parent / f"outcome-{number}").write_text(outcome.error or "done")


def test_eight_processes_on_one_folder(tmp_path):
    """One does the run; the others end with one clear error, or read its result."""
    folder = tmp_path / "run"
    workers = [CONTEXT.Process(target=_note, args=(folder, i)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    outcomes = [(tmp_path / f"outcome-{i}").read_text() for i in range(8)]
    assert "done" in outcomes
    assert all(one == "done" or "another process is at work on this run" in one for one in outcomes), outcomes
    run(CONFIG, tmp_path / "alone")
    assert (folder / "result.json").read_bytes() == (tmp_path / "alone" / "result.json").read_bytes()
    assert not list(folder.glob("*.tmp"))
    assert not (folder / "failure.txt").exists()


def _with_mark(mark: str) -> list[int]:
    """The processes that inherited this mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"BGD_TEST_MARK={mark}".encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue  # it has ended, or is somebody else's
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc to find orphans")
def test_a_killed_parent_leaves_no_orphans_and_no_lock(tmp_path):
    """Its workers notice, save their runs and end; the runs resume."""
    command = [sys.executable, "-m", "bgd", "run", "digits", "--preset", "smoke", "--row", "SGD", "--quiet"]
    command += ["--column", "fading tasks", "--set", "stream.iterations=200000", "--seeds", "1,2"]
    command += ["--out", str(tmp_path), "--executor", "processes", "--jobs", "2"]
    parent = subprocess.Popen(command, env={**os.environ, "BGD_TEST_MARK": str(tmp_path)})
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("*/*/metrics.jsonl"))) < 2:
        assert parent.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 60
    while _with_mark(str(tmp_path)):
        assert time.monotonic() < deadline, "orphans"
        time.sleep(0.1)
    folders = [path.parent for path in tmp_path.glob("*/*/metrics.jsonl")]
    assert all(list(folder.glob("checkpoint-*.pt")) for folder in folders)
    assert not list(tmp_path.rglob("failure.txt"))
    assert not any(map(finished, folders))
