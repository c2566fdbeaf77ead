"""Folders that cannot be used: one clear error, nothing damaged."""

import resource
import time
from pathlib import Path

import pytest
from small_runs import RUNS
from workers import CONTEXT

from bgd.files import write_atomically
from bgd.runs import Options, RunError, run
from bgd.runs.executors import Job, attempt
from bgd.runs.folder import RunFolder, read_result

CONFIG = RUNS["bgd, discrete"]
LONG = CONFIG.setup.stream.model_copy(update={"epochs": 30})  # still at work when another process begins


def test_two_processes_on_one_folder(tmp_path):
    config = CONFIG.model_copy(update={"setup": CONFIG.setup.model_copy(update={"stream": LONG})})
    process = CONTEXT.Process(target=attempt, args=(Job(config, tmp_path, Options(checkpoint_seconds=0)),))
    process.start()
    while process.is_alive() and not (tmp_path / "environment.json").exists():
        time.sleep(0.005)
    with pytest.raises(RunError, match="another process is at work on this run"):
        run(config, tmp_path)
    process.join()
    assert process.exitcode == 0
    assert read_result(tmp_path).config == config  # the first was not disturbed


def test_a_process_that_takes_the_folder_while_another_writes_its_configuration(tmp_path, monkeypatch):
    """It removes the drafts of killed processes, and so the other's: the other finds the configuration written."""
    replace = Path.replace

    def late(draft, path):
        monkeypatch.setattr(Path, "replace", replace)
        with RunFolder(tmp_path).opened(CONFIG):
            assert not draft.exists()
        return draft.replace(path)

    monkeypatch.setattr(Path, "replace", late)
    with RunFolder(tmp_path).opened(CONFIG):
        assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


def _run_with_little_space(config, folder, limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    outcome = attempt(Job(config, folder, Options(checkpoint_seconds=0)))
    with (folder.parent / "error").open("w") as file:
        file.write(outcome.error or "no error")


def test_a_full_disk(tmp_path):
    """No file may become as large as a checkpoint: a clear error, and with space the run continues."""
    folder = tmp_path / "run"
    process = CONTEXT.Process(target=_run_with_little_space, args=(CONFIG, folder, 10_000))
    process.start()
    process.join()
    assert "no space left on the disk" in (tmp_path / "error").read_text()
    assert f"bgd resume {folder}" in (tmp_path / "error").read_text()
    assert not list(folder.glob("*.tmp"))
    assert not list(folder.glob("checkpoint-*"))
    assert "RunError" in (folder / "failure.txt").read_text()
    after = run(CONFIG, folder)
    assert after.model_dump(exclude={"machine"}) == run(CONFIG, tmp_path / "fresh").model_dump(exclude={"machine"})
    assert not (folder / "failure.txt").exists()


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(RunError, match=r"cannot write here \(Not a directory\): choose another folder with --out"):
        run(CONFIG, tmp_path / "file" / "run")


def test_a_folder_of_another_run(tmp_path):
    run(CONFIG, tmp_path)
    with pytest.raises(RunError, match="holds another run"):
        run(CONFIG.model_copy(update={"seed": 6}), tmp_path)


def test_a_result_of_another_version_is_rejected(tmp_path):
    run(CONFIG, tmp_path)
    (tmp_path / "SHA256SUMS").unlink()  # which that version did not write
    (tmp_path / "result.json").write_text('{"R": []}')
    with pytest.raises(RunError, match=r"result\.json: not a RunResult of this version: config"):
        read_result(tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_only_the_last_two_checkpoints_are_kept(tmp_path):
    folder = RunFolder(tmp_path)
    with folder.opened(CONFIG):
        for iteration in (9, 10, 11):
            folder.checkpoints.save(iteration, {"iteration": iteration})
        assert [path.name.split("-")[1] for path in folder.checkpoints.paths()] == ["11", "10"]
        assert folder.checkpoints.load()["iteration"] == 11


def test_checkpoints_hold_no_code(tmp_path):
    """A checkpoint that would run code when unpickled is refused, even with the right hash."""
    import pickle

    folder = RunFolder(tmp_path)
    with folder.opened(CONFIG):
        folder.checkpoints.save(1, {"iteration": 1, "evil": _Evil()})
        with pytest.raises(pickle.UnpicklingError):
            folder.checkpoints.load()


class _Evil:
    def __reduce__(self):
        return print, ("code that ran",)


def test_new_checkpoints_are_kept_where_older_ones_are_damaged(tmp_path):
    folder = RunFolder(tmp_path)
    with folder.opened(CONFIG):
        folder.metrics.add("loss", iteration=1, loss=1.0)
        for iteration in (400, 500):
            folder.checkpoints.save(iteration, {"iteration": iteration})
    (tmp_path / "metrics.jsonl").write_text("{}\n")  # someone edited it
    folder = RunFolder(tmp_path)
    with folder.opened(CONFIG):
        assert folder.checkpoints.load() is None
        folder.metrics.truncate(None)
        folder.checkpoints.save(10, {"iteration": 10})
        assert folder.checkpoints.load()["iteration"] == 10


def test_a_folder_in_use_is_not_marked_as_failed(tmp_path):
    with RunFolder(tmp_path).opened(CONFIG):
        outcome = attempt(Job(CONFIG, tmp_path))
    assert "another process is at work" in outcome.error
    assert not (tmp_path / "failure.txt").exists()


def test_an_old_failure_is_removed_when_the_run_continues(tmp_path):
    run(CONFIG, tmp_path)
    (tmp_path / "result.json").unlink()
    (tmp_path / "failure.txt").write_text("ValueError: of yesterday")
    seen = []
    run(CONFIG, tmp_path, report=lambda progress: seen.append((tmp_path / "failure.txt").exists()))
    assert not any(seen)
