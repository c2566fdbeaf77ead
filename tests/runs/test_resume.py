"""A run that is stopped in whatever way, and resumed, ends as if nothing had happened."""

import hashlib
import io
import multiprocessing
import os
import random
import signal
import time

import pytest
import torch
from small_runs import RUNS

from bgd.runs import Interrupted, Options, run
from bgd.runs.executors.local import Job, attempt

ALWAYS = Options(checkpoint_seconds=0)
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["bgd.runs.executors.local", "sklearn.datasets"])


def compared(folder):
    """What must be the same: bytes."""
    return {name: (folder / name).read_bytes() for name in ("result.json", "metrics.jsonl", "config.json")}


def start(config, folder, options=ALWAYS):
    process = CONTEXT.Process(target=attempt, args=(Job(config, folder, options),))
    process.start()
    return process


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Each run, once and in one go."""
    folders = {}

    def get(name):
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp("reference")
            run(RUNS[name], folders[name])
        return folders[name]

    return get


def kill_until_done(config, folder, moments, window):
    """Start the run until it ends, and kill it up to three times on the way; returns how often it was killed."""
    killed = 0
    while not (folder / "result.json").exists():
        process = start(config, folder)
        if killed < 3:
            # the moment is counted from the first sign of life; some come before the first checkpoint
            while process.is_alive() and not (folder / "environment.json").exists():
                time.sleep(0.005)
            process.join(moments.uniform(0.0, window))
        else:
            process.join()
        if process.is_alive():
            process.kill()
            killed += 1
        process.join()
    return killed


@pytest.mark.parametrize("name", RUNS)
def test_killed_at_random_moments(name, uninterrupted, tmp_path):
    reference = compared(uninterrupted(name))
    moments = random.Random(name)
    for attempt_number in range(12):  # a fast machine may be done before the moment comes: then look sooner
        folder = tmp_path / str(attempt_number)
        folder.mkdir()
        if kill_until_done(RUNS[name], folder, moments, 0.4 / 1.5**attempt_number):
            break
    else:
        pytest.fail("the run was over before it could be killed, twelve times")
    assert compared(folder) == reference
    assert not list(folder.glob("*.tmp"))


@pytest.mark.parametrize("name", ["bgd, continuous", "online-ewc, discrete"])
def test_stopped_at_every_iteration(name, uninterrupted, tmp_path):
    """The same in one process: whatever the moment, the next session goes on from there."""
    iterations = []

    def stop(place):
        if not place.doing:
            iterations.append(place.done)
            os.kill(os.getpid(), signal.SIGINT)

    while True:
        try:
            run(RUNS[name], tmp_path, ALWAYS, report=stop)
            break
        except Interrupted as error:
            said = str(error)
    assert f"bgd resume {tmp_path}" in said
    assert Interrupted.exit_code == 130
    assert len(iterations) >= 20
    assert iterations == sorted(set(iterations)), "no iteration comes twice"
    assert compared(tmp_path) == compared(uninterrupted(name))


def test_metrics_have_no_line_twice_and_none_is_lost(uninterrupted):
    lines = (uninterrupted("bgd, continuous") / "metrics.jsonl").read_text().splitlines()
    assert len(set(lines)) == len(lines)
    losses = [line for line in lines if '"kind": "loss"' in line]
    assert len(losses) == 7


def test_a_damaged_checkpoint_is_passed_over(uninterrupted, tmp_path):
    name = "bgd, discrete"
    stop_after(RUNS[name], tmp_path, 5)
    newest = max(tmp_path.glob("checkpoint-*.pt"), key=lambda path: int(path.name.split("-")[1]))
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    begun = []
    with pytest.warns(RuntimeWarning, match=f"{newest.name} is damaged: this run goes on from iteration 4"):
        run(RUNS[name], tmp_path, ALWAYS, report=lambda place: begun.append(place.done))
    assert begun[0] == 4  # the last good one
    assert compared(tmp_path) == compared(uninterrupted(name))


def test_a_checkpoint_of_the_first_version_is_good_too(uninterrupted, tmp_path):
    name = "bgd, discrete"
    stop_after(RUNS[name], tmp_path, 5)
    for path in tmp_path.glob("checkpoint-*.pt"):
        state = torch.load(path, weights_only=True)
        del state["generators"]
        state["seconds"] = state["seconds"][:2]
        content = io.BytesIO()
        torch.save(state, content)
        path.unlink()
        digest = hashlib.sha256(content.getvalue()).hexdigest()[:32]
        (tmp_path / f"checkpoint-{state['iteration']}-{digest}.pt").write_bytes(content.getvalue())
    begun = []
    machine = run(RUNS[name], tmp_path, ALWAYS, report=lambda place: begun.append(place.done)).machine
    assert begun[0] == 5
    assert machine.sessions == 2
    assert compared(tmp_path) == compared(uninterrupted(name))


def test_metrics_that_were_tampered_with_start_the_run_anew(uninterrupted, tmp_path):
    name = "bgd, discrete"
    stop_after(RUNS[name], tmp_path, 5)
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"loss"', b'"lass"', 1))
    begun = []
    with pytest.warns(RuntimeWarning, match="is damaged: this run begins anew"):
        run(RUNS[name], tmp_path, ALWAYS, report=lambda place: begun.append(place.done))
    assert begun[0] == 0
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


def test_the_trained_network_can_be_kept(tmp_path):
    run(RUNS["bgd, discrete"], tmp_path, Options(keep=True))
    assert len(list(tmp_path.glob("checkpoint-*.pt"))) == 1


def test_machine_time_adds_up_over_sessions(tmp_path):
    stop_after(RUNS["bgd, discrete"], tmp_path, 10)
    machine = run(RUNS["bgd, discrete"], tmp_path).machine
    assert machine.sessions == 2
    assert machine.seconds > machine.train_seconds > 0


def stop_after(config, folder, iteration):
    def stop(place):
        if place.done == iteration:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        run(config, folder, ALWAYS, report=stop)
