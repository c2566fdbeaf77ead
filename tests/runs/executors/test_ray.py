"""On a real Ray: the same results as everywhere, and a run whose node is killed continues from its checkpoint."""

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock
from small_runs import AGNOSTIC, BGD, EVERY, RUNS, small

from bgd.cli import main
from bgd.runs import Options, RunError, run
from bgd.runs.executors import Job, OnRay
from bgd.runs.executors.ray import executor, scheduling
from bgd.runs.executors.ray.head import LOCK, MESSAGE, NEW, cluster_folder, remove_leftovers
from bgd.runs.executors.ray.worker import Driver, versions, work
from bgd.runs.folder import RunFolder, prepare

try:
    import ray
    from ray.cluster_utils import Cluster
except ImportError:
    ray = None

needs_ray = pytest.mark.skipif(
    ray is None or not Path("/proc").is_dir(), reason="needs Ray (pip install ray) and a system with /proc"
)

OFTEN = Options(checkpoint_seconds=0.05)
LENGTH = 1000  # iterations: some seconds, in which something can happen to the run
STREAM = {"kind": "continuous", "iterations": LENGTH, "batch_size": 16}
LONG = {
    1: small("bgd", STREAM, AGNOSTIC, BGD, seed=1),
    2: small("online-ewc", STREAM, AGNOSTIC, EVERY, seed=2),  # nearly always in the middle of a consolidation
}


def silent(job, progress):
    pass


def jobs_in(folder, configs, options=None):
    return [Job(config, folder / str(i), options or Options()) for i, config in enumerate(configs)]


@pytest.fixture(scope="module")
def same_as_in_this_process(tmp_path_factory):
    """Whether runs are, byte for byte, what they are in this process without interruption."""
    folders = {}

    def compare(*jobs):
        for job in jobs:
            if job.config.digest not in folders:
                folders[job.config.digest] = tmp_path_factory.mktemp("reference")
                run(job.config, folders[job.config.digest])
        return all(
            (job.folder / name).read_bytes() == (folders[job.config.digest] / name).read_bytes()
            for job in jobs
            for name in ("result.json", "metrics.jsonl")
        )

    return compare


@contextlib.contextmanager
def as_soon_as(condition, action):
    """Inside, do the action as soon as the condition holds."""
    over = threading.Event()

    def watch():
        while not over.wait(0.02):
            if condition():
                action()
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def sessions_of(job):
    return json.loads((job.folder / "environment.json").read_text())["sessions"]


def title_of(job):
    """Of the process of a run, as Ray names it."""
    return f"ray::bgd {job.config.title}"


def iterations_of(job):
    """Of its checkpoints, newest first."""
    return [int(path.name.split("-")[1]) for path in RunFolder(job.folder).checkpoints.paths()]


def processes_with(text):
    """Those whose command line holds it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if text.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def marked(mark):
    """The processes that inherited this mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"BGD_TEST_MARK={mark}".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def parent_of(pid):
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return None


@pytest.fixture(scope="module")
def cluster():
    """A Ray of one node with one core, to which others can be added."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tempfile.mkdtemp(prefix="bgd-", dir="/tmp")  # the names of sockets must be short
        Path(folder, "ray").mkdir()
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # as in clusters that we start
        patch.setattr(ray._private.ray_constants, "ENABLE_RAY_CLUSTER", False)  # loopback only
        before = signal.getsignal(signal.SIGTERM)
        node = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
        made = Cluster(initialize_head=True, head_node_args=node)
        try:
            yield made
        finally:
            made.shutdown()
            signal.signal(signal.SIGTERM, before)
            shutil.rmtree(folder, ignore_errors=True)


@needs_ray
def test_the_run_of_a_killed_node_continues_from_its_checkpoint(cluster, same_as_in_this_process, tmp_path, capfd):
    killable = cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
    cluster.wait_for_nodes()
    raylet = killable.all_processes["raylet"][0].process.pid
    jobs = jobs_in(tmp_path, LONG.values(), OFTEN)
    kept, received, reports = {}, {}, {job.folder: [] for job in jobs}

    def at_risk():
        """The run on the second node, once there is a checkpoint to continue from."""
        there = [job for job in jobs if any(parent_of(pid) == raylet for pid in processes_with(title_of(job)))]
        return [job for job in there if min(iterations_of(job), default=0) >= 20]

    def kill():
        (job,) = at_risk()
        cluster.remove_node(killable, allow_graceful=False)
        kept[job.folder] = max(iterations_of(job), default=LENGTH)
        received[job.folder] = len(reports[job.folder])

    with as_soon_as(at_risk, kill):
        outcomes = list(
            OnRay(address=cluster.address)(jobs, lambda job, progress: reports[job.folder].append(progress))
        )
    assert kept, "no node was killed"
    assert not ray.is_initialized()
    assert not [o.error for o in outcomes if o.error]
    assert sorted(o.job.folder for o in outcomes) == [job.folder for job in jobs]
    # the run of the other node was not restarted; a run that starts again would count its sessions from 1
    for job in jobs:
        assert sessions_of(job) == (2 if job.folder in kept else 1)
        if job.folder in kept:
            assert 20 <= kept[job.folder] < LENGTH
            # a report from before the failure may arrive after it; but where reports fall back, it is to a checkpoint
            iterations = [progress.iteration for progress in reports[job.folder]]
            assert all(later >= min(earlier, 20) for earlier, later in pairwise(iterations))
            assert max(iterations[received[job.folder] :]) >= 20
            assert {progress.tasks for progress in reports[job.folder]} == {3}
    assert same_as_in_this_process(*jobs)
    assert capfd.readouterr().out == ""


@needs_ray
def test_failed_workers_are_replaced_as_long_as_the_run_gets_further(
    cluster, same_as_in_this_process, tmp_path, monkeypatch
):
    monkeypatch.setattr(scheduling, "FAILURES", 1)
    (job,) = jobs = jobs_in(tmp_path, [LONG[2]], OFTEN)
    strikes = [signal.SIGTERM, signal.SIGKILL]  # a node that shuts down ends its workers; one that fails kills them
    reached = [0]

    def strike(job, progress):
        pids = processes_with(title_of(jobs[0]))
        if strikes and pids and max(iterations_of(job), default=0) > reached[-1]:
            os.kill(pids[0], strikes.pop(0))
            while pids[0] in processes_with(title_of(jobs[0])):
                time.sleep(0.01)
            reached.append(max(iterations_of(job)))

    (outcome,) = OnRay(address=cluster.address)(jobs, strike)
    assert not strikes
    assert outcome.error is None
    assert sessions_of(job) == 3
    assert same_as_in_this_process(job)


@needs_ray
def test_a_run_that_does_not_get_further_is_given_up_and_the_rest_continues(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(scheduling, "FAILURES", 0)
    jobs = jobs_in(tmp_path, [LONG[1], RUNS["offline"]], Options(checkpoint_seconds=1e9))

    def kill(job, progress):
        for pid in processes_with(title_of(jobs[0])):
            os.kill(pid, signal.SIGKILL)

    outcomes = {o.job.folder: o for o in OnRay(address=cluster.address)(jobs, kill)}
    failed, fine = outcomes[jobs[0].folder], outcomes[jobs[1].folder]
    assert "failed in a row without a new checkpoint" in failed.error
    assert f"bgd resume {jobs[0].folder}" in failed.error
    assert not failed.interrupted
    assert fine.result is not None


@needs_ray
def test_without_an_address_a_local_cluster_is_started_and_removed(
    same_as_in_this_process, tmp_path, monkeypatch, capfd
):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.chdir(tmp_path)  # folders may be relative
    exploding = small("sgd", {"epochs": 1}, "domain", {"lr": 1e30})
    configs = [exploding, RUNS["bgd, continuous"], RUNS["online-ewc, discrete"]]
    jobs = jobs_in(Path("ray"), configs)
    before, handler = set(Path("/tmp").glob("bgd-ray-*")), signal.getsignal(signal.SIGTERM)
    outcomes, (cluster,) = {}, [None]
    for outcome in OnRay(count=1)(jobs, silent):
        outcomes[outcome.job.folder] = outcome
        (cluster,) = set(Path("/tmp").glob("bgd-ray-*")) - before
        host = ray.get_runtime_context().gcs_address.rsplit(":", 1)[0]
        assert ray.cluster_resources()["CPU"] == 1
    failed = outcomes[jobs[0].folder]
    assert "lower lr" in failed.error
    assert failed.traceback == jobs[0].folder / "failure.txt"
    assert "Traceback" in failed.traceback.read_text()
    assert all(outcomes[job.folder].job is job for job in jobs)
    assert same_as_in_this_process(*jobs[1:])
    # reachable from this machine alone, quiet, and gone
    assert host == "127.0.0.1"
    assert signal.getsignal(signal.SIGTERM) == handler
    assert not ray.is_initialized()
    assert not cluster.exists()
    deadline = time.monotonic() + 10
    while processes_with(str(cluster)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not processes_with(str(cluster))
    assert capfd.readouterr() == ("", "")


@needs_ray
@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", r"no Ray cluster at '127.0.0.1:1' .*--ray-address"),
        ("nowhere", r"'nowhere': give an address such as"),
        ("ray://127.0.0.1:10001", r"Ray Client"),
    ],
)
def test_an_unreachable_cluster_is_rejected(address, message, tmp_path):
    with pytest.raises(RunError, match=message):
        list(OnRay(address=address)(jobs_in(tmp_path, [RUNS["offline"]]), silent))


@needs_ray
def test_a_folder_that_holds_another_run_is_reported_before_a_cluster_is_started(tmp_path):
    (job,) = jobs_in(tmp_path, [RUNS["offline"]])
    prepare(job.folder, RUNS["bgd, discrete"])
    (outcome,) = OnRay()([job], silent)
    assert "another run" in outcome.error


@needs_ray
def test_a_numbered_gpu_is_rejected(tmp_path):
    config = RUNS["offline"].model_copy(update={"device": "cuda:1"})
    with pytest.raises(RunError, match="use that"):
        list(OnRay()(jobs_in(tmp_path, [config]), silent))


@needs_ray
def test_own_modules_are_imported_on_the_nodes(cluster, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "my_method.py").write_text("from bgd.methods import SGD\n\n\nclass Mine(SGD):\n    pass\n")
    config = small("my_method:Mine", {"epochs": 1}, "domain")
    (outcome,) = OnRay(address=cluster.address)(
        [Job(config, tmp_path / "run", OFTEN, (str(tmp_path / "own"),))], silent
    )
    assert outcome.error is None
    assert json.loads((tmp_path / "run" / "environment.json").read_text())["import_paths"] == [str(tmp_path / "own")]


@needs_ray
def test_classes_of_a_notebook_are_rejected(tmp_path):
    config = small("__main__:Mine", {"epochs": 1}, "domain")
    with pytest.raises(RunError, match="where a Ray worker cannot import it"):
        list(OnRay()(jobs_in(tmp_path, [config]), silent))


def test_nodes_that_do_not_share_files_or_versions_are_refused(tmp_path):
    (job,) = jobs_in(tmp_path, [RUNS["offline"]])
    same = Driver(str(tmp_path), {}, versions())
    assert "does not exist on" in work(job, same, board=None, retry=False).error
    prepare(job.folder, job.config)
    other = dataclasses.replace(same, versions=same.versions | {"torch": "1.0"})
    assert "but 1.0 in the driver" in work(job, other, board=None, retry=False).error
    assert not (job.folder / "metrics.jsonl").exists()


def test_a_retried_run_waits_until_its_failed_worker_has_ended(tmp_path):
    (job,) = jobs_in(tmp_path, [RUNS["offline"]])
    prepare(job.folder, job.config)
    same = Driver(os.getcwd(), {}, versions())
    board = SimpleNamespace(put=SimpleNamespace(remote=lambda *_: None))
    lock = FileLock(job.folder / ".lock", thread_local=False)
    lock.acquire()
    assert "another process is at work" in work(job, same, board, retry=False).error
    release = threading.Timer(0.3, lock.release)
    release.start()
    assert work(job, same, board, retry=True).error is None
    release.join()


def test_runs_too_large_for_every_node_give_a_warning():
    nodes = [{"Alive": True, "Resources": {"CPU": 2.0}}, {"Alive": False, "Resources": {"CPU": 8.0}}]
    cluster = SimpleNamespace(nodes=lambda: nodes)
    executor._warn_of_small_nodes(cluster, 2)
    with pytest.warns(UserWarning, match="no node of the Ray cluster has 3 cores"):
        executor._warn_of_small_nodes(cluster, 3)


def test_a_missing_ray_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", None)
    with pytest.raises(RunError, match=r'pip install "bgd\[ray\]"'):
        OnRay()


def test_folders_that_killed_processes_left_behind_are_removed_and_no_others(tmp_path):
    left, young, others = (tmp_path / f"bgd-ray-{name}" for name in ("left", "young", "others"))
    for folder in (left, young, others):
        folder.mkdir()
    for folder in (left, young):
        (folder / LOCK).touch()
    with cluster_folder(str(tmp_path)) as alive:
        for folder in (left, alive):
            os.utime(folder / LOCK, (time.time() - 2 * NEW,) * 2)
        remove_leftovers(tmp_path)
        assert not left.exists()
        assert alive.exists()
    assert set(tmp_path.iterdir()) == {young, others}


# --- the command


@needs_ray
def test_the_interrupted_command_saves_and_ends_its_cluster(tmp_path):
    """As from a terminal: Ctrl-C goes to all processes of the group, those of Ray too."""
    command = [sys.executable, "-m", "bgd.cli", "run", "digits", "--preset", "smoke", "--row", "SGD", "--jobs", "1"]
    command += ["--column", "fading tasks", "--seeds", "1-9", "--executor", "ray", "--out", str(tmp_path)]
    before = set(Path("/tmp").glob("bgd-ray-*"))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    with as_soon_as(lambda: list(tmp_path.rglob("metrics.jsonl")), lambda: os.killpg(process.pid, signal.SIGINT)):
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err.decode()
    assert "with: bgd resume" in err.decode()
    assert "Traceback" not in err.decode()
    assert not set(Path("/tmp").glob("bgd-ray-*")) - before
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_the_command_without_ray(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", None)
    with pytest.raises(SystemExit) as ended:
        main(["run", "digits", "--preset", "smoke", "--executor", "ray", "--out", str(tmp_path)])
    assert ended.value.code == 2
    assert 'pip install "bgd[ray]"' in capsys.readouterr().err


def test_an_address_for_another_executor_is_wrong_usage(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "digits", "--executor", "serial", "--ray-address", "auto", "--out", str(tmp_path)])
    assert ended.value.code == 2
    assert "--ray-address" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@needs_ray
@pytest.mark.skipif("BGD_ATTACKS" not in os.environ, reason="takes a minute: a part of docs/reliability.md")
def test_after_the_head_is_killed_nothing_is_left_and_resuming_gives_the_same_bytes(tmp_path):
    """Whoever waits for Ray without its head is ended by Ray after a minute."""
    command = ["digits", "--preset", "smoke", "--row", "BGD", "--column", "fading tasks", "--seeds", "1"]
    command += ["--set", "stream.iterations=3000"]
    mark, before = {"BGD_TEST_MARK": str(tmp_path)}, set(Path("/tmp").glob("bgd-ray-*"))
    ray_run = [sys.executable, "-m", "bgd", "run", *command, "--executor", "ray", "--out", str(tmp_path / "ray")]
    process = subprocess.Popen(ray_run, env=os.environ | mark, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while not list(tmp_path.rglob("metrics.jsonl")):
        assert process.poll() is None
        time.sleep(0.05)
    for pid in set(processes_with("gcs_server")) & set(marked(str(tmp_path))):
        os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert [line for line in err.decode().splitlines() if line.startswith("bgd: ")] == [MESSAGE]
    assert "Traceback" not in err.decode()
    assert not set(Path("/tmp").glob("bgd-ray-*")) - before
    deadline = time.monotonic() + 120
    while left := marked(str(tmp_path)):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    (folder,) = (path.parent for path in tmp_path.rglob("config.json"))
    assert not (folder / "result.json").exists()
    for arguments in (["resume", str(folder)], ["run", *command, "--out", str(tmp_path / "alone")]):
        with pytest.raises(SystemExit, match="0"):
            main([*arguments, "--quiet", "--executor", "serial"])
    one, two = (path.read_bytes() for path in tmp_path.rglob("result.json"))
    assert one == two
