"""A run that was interrupted and resumed ends with the same bytes as one that never was."""

import os
import random
import signal
import time

import pytest
import torch
from small_runs import CONV_RUNS, RUNS
from workers import CONTEXT

from bgd.runs import Interrupted, Options, run
from bgd.runs.executors import Job, attempt

ALWAYS = Options(checkpoint_seconds=0)


def compared(folder):
    """The bytes that must be the same."""
    return {name: (folder / name).read_bytes() for name in ("result.json", "metrics.jsonl", "config.json")}


def start(config, folder, options=ALWAYS):
    process = CONTEXT.Process(target=attempt, args=(Job(config, folder, options),))
    process.start()
    return process


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The folder of each run, uninterrupted."""
    folders = {}

    def get(name):
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp("reference")
            run(RUNS[name], folders[name])
        return folders[name]

    return get


def kill_until_done(config, folder, delays, window):
    """Start the run until it ends, and kill it up to three times; returns how often it was killed."""
    killed = 0
    while not (folder / "result.json").exists():
        process = start(config, folder)
        if killed < 3:
            # the delay is counted from the first file; some end before the first checkpoint
            while process.is_alive() and not (folder / "environment.json").exists():
                time.sleep(0.005)
            process.join(delays.uniform(0.0, window))
        else:
            process.join()
        if process.is_alive():
            process.kill()
            killed += 1
        process.join()
    return killed


@pytest.mark.parametrize("name", RUNS)
def test_killed_at_random_times(name, uninterrupted, tmp_path):
    reference = compared(uninterrupted(name))
    delays = random.Random(name)
    for attempt_number in range(12):  # a fast machine may finish earlier: then kill sooner
        folder = tmp_path / str(attempt_number)
        folder.mkdir()
        if kill_until_done(RUNS[name], folder, delays, 0.4 / 1.5**attempt_number):
            break
    else:
        pytest.fail("the run was over before it could be killed, twelve times")
    assert compared(folder) == reference
    assert not list(folder.glob("*.tmp"))


@pytest.mark.parametrize("name", ["bgd, continuous", "online-ewc, discrete"])
def test_stopped_at_every_iteration(name, uninterrupted, tmp_path):
    """The same in one process: the next session continues from any iteration."""
    iterations = []

    def stop(progress):
        if not progress.activity:
            iterations.append(progress.iteration)
            os.kill(os.getpid(), signal.SIGINT)

    while True:
        try:
            run(RUNS[name], tmp_path, ALWAYS, report=stop)
            break
        except Interrupted as error:
            message = str(error)
    assert f"bgd resume {tmp_path}" in message
    assert Interrupted.exit_code == 130
    assert len(iterations) >= 20
    assert iterations == sorted(set(iterations)), "no iteration comes twice"
    assert compared(tmp_path) == compared(uninterrupted(name))


@pytest.mark.parametrize("name", CONV_RUNS)
def test_conv_nets_stopped_at_every_iteration(name, tmp_path):
    """Dropout and running statistics too continue from the checkpoint, whatever the caller did to torch's generator."""
    run(CONV_RUNS[name], tmp_path / "whole")
    sessions, stopped = 0, 0

    def stop(*_):
        nonlocal stopped
        if stopped < sessions:  # once in each session: a second signal would end the process
            stopped = sessions
            os.kill(os.getpid(), signal.SIGINT)

    while True:
        sessions += 1
        with torch.random.fork_rng():
            torch.manual_seed(sessions)
            before = torch.get_rng_state()
            try:
                run(CONV_RUNS[name], tmp_path / "parts", Options(checkpoint_seconds=0), report=stop)
                break
            except Interrupted:
                assert torch.equal(torch.get_rng_state(), before)
    assert sessions >= 4
    assert compared(tmp_path / "parts") == compared(tmp_path / "whole")


def test_metrics_have_each_line_once(uninterrupted):
    lines = (uninterrupted("bgd, continuous") / "metrics.jsonl").read_text().splitlines()
    assert len(set(lines)) == len(lines)
    losses = [line for line in lines if '"kind": "loss"' in line]
    assert len(losses) == 7


def test_a_damaged_checkpoint_is_skipped(uninterrupted, tmp_path):
    name = "bgd, discrete"
    stop_after(RUNS[name], tmp_path, 5)
    newest = max(tmp_path.glob("checkpoint-*.pt"), key=lambda path: int(path.name.split("-")[1]))
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    started = []
    with pytest.warns(RuntimeWarning, match=f"{newest.name} is damaged: this run continues from iteration 4"):
        run(RUNS[name], tmp_path, ALWAYS, report=lambda progress: started.append(progress.iteration))
    assert started[0] == 4  # the last good one
    assert compared(tmp_path) == compared(uninterrupted(name))


def test_a_run_with_edited_metrics_starts_again(uninterrupted, tmp_path):
    name = "bgd, discrete"
    stop_after(RUNS[name], tmp_path, 5)
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"loss"', b'"lass"', 1))
    started = []
    with pytest.warns(RuntimeWarning, match="is damaged: this run starts again"):
        run(RUNS[name], tmp_path, ALWAYS, report=lambda progress: started.append(progress.iteration))
    assert started[0] == 0
    assert compared(tmp_path) == compared(uninterrupted(name))


def test_a_finished_run_is_not_run_again(tmp_path):
    first = run(RUNS["bgd, discrete"], tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = run(RUNS["bgd, discrete"], tmp_path, report=lambda *_: pytest.fail("it ran again"))
    assert again == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir() if path.name != ".lock"} == {
        path: stamp for path, stamp in before.items() if path.name != ".lock"
    }
    assert not list(tmp_path.glob("checkpoint-*"))


def test_the_last_checkpoint_is_kept_on_request(tmp_path):
    run(RUNS["bgd, discrete"], tmp_path, Options(keep=True))
    assert len(list(tmp_path.glob("checkpoint-*.pt"))) == 1


def test_machine_time_adds_up_over_sessions(tmp_path):
    stop_after(RUNS["bgd, discrete"], tmp_path, 10)
    machine = run(RUNS["bgd, discrete"], tmp_path).machine
    assert machine.sessions == 2
    assert machine.seconds > machine.train_seconds > 0


def stop_after(config, folder, iteration):
    def stop(progress):
        if progress.iteration == iteration:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        run(config, folder, ALWAYS, report=stop)
