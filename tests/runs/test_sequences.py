"""Random sequences on a run's folder: whatever is interrupted, deleted or damaged, a result is the same bytes."""

import os
import shutil
import signal
import tempfile
import warnings
from pathlib import Path

import pytest
from attacks import attacks
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from small_runs import small

from bgd.report.load import load
from bgd.runs import Interrupted, Options, RunError, run
from bgd.runs.digests import FILE
from bgd.runs.folder import RunFolder, finished, read_result

STREAM = {"kind": "continuous", "iterations": 16, "batch_size": 8}
CONFIG = small("bgd", STREAM, "continuous task-agnostic", test={"evaluations": 2, "samples": 2, "curve": 4})
OUTPUTS = ("result.json", "metrics.jsonl")


class RunFolders(RuleBasedStateMachine):
    reference: dict[str, bytes]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="bgd-test-"))
        self.path = self.folder / "run"
        self.spoilt = False  # a file of a finished run has been changed or deleted
        self.unreadable = False  # the record of the environment is damaged, and the run will not go on

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def run(self, at: int | None = None) -> None:
        sent = []

        def stop(progress):
            if at is not None and progress.iteration >= at and not sent:  # a second one would not wait to save
                sent.append(progress.iteration)
                os.kill(os.getpid(), signal.SIGINT)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # that a checkpoint is damaged
            run(CONFIG, self.path, Options(checkpoint_seconds=0), stop)

    @precondition(lambda self: not self.spoilt and not finished(self.path))
    @rule(at=st.integers(1, 15))
    def interrupt(self, at: int) -> None:
        try:
            self.run(at)
        except Interrupted:
            return
        assert finished(self.path)  # it had come further before

    @precondition(lambda self: not self.spoilt)
    @rule()
    def complete(self) -> None:
        self.run()
        assert finished(self.path)

    @precondition(lambda self: self.path.is_dir())
    @rule()
    def rerun(self) -> None:
        with RunFolder(self.path).opened(CONFIG) as folder:
            folder.clear()
        self.spoilt = self.unreadable = False

    @precondition(lambda self: self.path.is_dir())
    @rule(which=st.integers(0, 9), how=st.sampled_from(["delete", "damage"]))
    def lose(self, which: int, how: str) -> None:
        files = sorted(p for p in self.path.iterdir() if p.name not in (".lock", "config.json", FILE))
        if not files or (not finished(self.path) and files[which % len(files)].name == "environment.json"):
            return
        path, was_finished = files[which % len(files)], finished(self.path)
        if how == "delete":
            path.unlink()
        else:
            content = path.read_bytes()
            path.write_bytes(content[: len(content) // 2] + b"?" + content[len(content) // 2 + 1 :])
        if path.name == "environment.json":
            self.unreadable = how == "damage"
        covered = path.name in (*OUTPUTS, "environment.json")
        self.spoilt = (
            self.spoilt
            or (was_finished and covered and path.name != "result.json")
            or (path.name == "result.json" and how == "damage")
        )
        if not finished(self.path):
            self.spoilt = self.unreadable

    @invariant()
    def what_is_read_is_right(self) -> None:
        if not finished(self.path):
            return
        if self.spoilt:
            with pytest.raises(RunError, match=str(self.path)):
                read_result(self.path)
            return
        result = read_result(self.path)
        assert {name: (self.path / name).read_bytes() for name in OUTPUTS} == self.reference
        [comparison] = load(self.folder)
        assert [one.average_accuracy for one in comparison.runs] == [result.average_accuracy]


def test_random_sequences_on_a_run_folder(tmp_path) -> None:
    run(CONFIG, tmp_path)
    RunFolders.reference = {name: (tmp_path / name).read_bytes() for name in OUTPUTS}
    # without shrinking, which would take many minutes of runs
    how = settings(max_examples=attacks(3), stateful_step_count=8, deadline=None, phases=(Phase.generate,))
    run_state_machine_as_test(RunFolders, settings=how)
