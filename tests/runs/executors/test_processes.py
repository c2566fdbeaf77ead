"""The same jobs, in this process or in many: the same results, and one that fails does not affect the others."""

import multiprocessing
import os
import signal
import threading
import time

import pytest
from small_runs import RUNS, small

from bgd.runs.executors import Job, Processes, in_this_process
from bgd.runs.folder import finished
from bgd.runs.options import Options


def silent(job, progress):
    pass


def jobs_in(folder, configs, options=None):
    return [Job(config, folder / str(i), options or Options()) for i, config in enumerate(configs)]


def test_bit_for_bit_the_same_in_processes(tmp_path):
    configs = [RUNS["bgd, continuous"], RUNS["online-ewc, discrete"], RUNS["offline"]]
    one, many = jobs_in(tmp_path / "one", configs), jobs_in(tmp_path / "many", configs)
    seen = []
    assert not [o.error for o in in_this_process(one, silent) if o.error]
    outcomes = list(Processes(2)(many, lambda job, progress: seen.append((job.folder, progress))))
    assert not [o.error for o in outcomes if o.error]
    for a, b in zip(one, many, strict=True):
        assert (a.folder / "result.json").read_bytes() == (b.folder / "result.json").read_bytes()
    assert {folder for folder, _ in seen} == {job.folder for job in many}
    names = {folder: {progress.name for other, progress in seen if other == folder} for folder, _ in seen}
    assert names[many[1].folder] == {"unpermuted", "permutation 1", "permutation 2"}
    assert all(outcome.result.machine.seconds > 0 for outcome in outcomes)


@pytest.mark.parametrize("executor", [in_this_process, Processes(2)], ids=["this process", "processes"])
def test_one_that_fails_does_not_stop_the_rest(executor, tmp_path):
    exploding = small("sgd", {"epochs": 1}, "domain", {"lr": 1e30})
    jobs = jobs_in(tmp_path, [exploding, RUNS["online-ewc, discrete"]])
    outcomes = {o.job.folder: o for o in executor(jobs, silent)}
    failed, fine = outcomes[jobs[0].folder], outcomes[jobs[1].folder]
    assert "lower lr" in failed.error
    assert failed.traceback == jobs[0].folder / "failure.txt"
    assert "Traceback" in failed.traceback.read_text()
    assert fine.result is not None


def test_a_killed_process_is_reported_and_can_be_resumed(tmp_path):
    jobs = jobs_in(tmp_path, [RUNS["bgd, continuous"], RUNS["online-ewc, discrete"]], Options(checkpoint_seconds=0))
    executor = Processes(2)
    killed = []

    def kill_one(job, progress):
        if job is jobs[0] and progress.iteration >= 10 and not killed:
            workers = [p for p in multiprocessing.active_children() if p.name == "bgd worker"]
            killed.append(min(worker.pid for worker in workers))  # the first job went to the first worker
            os.kill(killed[0], signal.SIGKILL)

    outcomes = {o.job.folder: o for o in executor(jobs, kill_one)}
    assert "its process died (SIGKILL" in outcomes[jobs[0].folder].error
    assert outcomes[jobs[1].folder].result is not None
    again = list(executor(jobs[:1], silent))
    assert again[0].result.machine.sessions == 2
    reference = next(iter(in_this_process(jobs_in(tmp_path / "reference", [RUNS["bgd, continuous"]]), silent)))
    assert again[0].result.R == reference.result.R


@pytest.mark.parametrize("executor", [in_this_process, Processes(2)], ids=["this process", "processes"])
def test_a_stop_request_saves_every_run(executor, tmp_path):
    jobs = jobs_in(
        tmp_path, [RUNS["bgd, continuous"], RUNS["bgd, drifting"], RUNS["offline"]], Options(checkpoint_seconds=0)
    )
    requested = threading.Event()

    def request_stop(job, progress):
        if progress.iteration >= 5 and not requested.is_set():
            requested.set()
            os.kill(os.getpid(), signal.SIGINT)

    outcomes = list(executor(jobs, request_stop))
    assert outcomes
    assert all(o.interrupted or o.result for o in outcomes)
    assert any(o.interrupted for o in outcomes)
    stopped = next(o for o in outcomes if o.interrupted)
    assert "bgd resume" in stopped.error
    assert list(stopped.job.folder.glob("checkpoint-*.pt")) or not (stopped.job.folder / "metrics.jsonl").exists()
    deadline = time.monotonic() + 60
    while not all(finished(job.folder) for job in jobs) and time.monotonic() < deadline:
        assert not [o.error for o in in_this_process(jobs, silent) if o.error]
    assert all(finished(job.folder) for job in jobs)


def test_a_stop_request_at_the_end_of_a_run_begins_no_other(tmp_path):
    jobs = jobs_in(tmp_path, [RUNS["offline"]] * 3)

    def request_stop(job, progress):
        if job is jobs[0] and progress.iteration == progress.total:
            os.kill(os.getpid(), signal.SIGINT)

    outcomes = list(in_this_process(jobs, request_stop))
    assert len(outcomes) == 1


def test_a_stop_request_during_the_start_stops(tmp_path):
    long = small("sgd", {"kind": "continuous", "iterations": 10_000_000}, "continuous task-agnostic")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    began = time.monotonic()
    outcomes = list(Processes(1)(jobs_in(tmp_path, [long]), silent))
    timer.join()
    assert all(outcome.interrupted for outcome in outcomes)
    assert time.monotonic() - began < 60  # and not when the run has ended
