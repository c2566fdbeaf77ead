"""On a real Ray: the same results as everywhere, and a run whose node is killed goes on from its checkpoint."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from small_runs import BGD, RUNS, small

from bgd.runs import Options, RunError
from bgd.runs.executors import Job, here
from bgd.runs.folder import RunFolder

try:
    import ray
    from ray.cluster_utils import Cluster
except ImportError:
    ray = None

from bgd.runs.ray_executor import LOSSES, OnRay, load_ray

needs_ray = pytest.mark.skipif(ray is None, reason="Ray is not installed: pip install ray")
# Ray leaves pipes and log files of its child processes to the garbage collector
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*subprocess .* is still running:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*unclosed file:ResourceWarning"),
]

ALWAYS = Options(checkpoint_seconds=0)
LONG = {"kind": "continuous", "iterations": 1500, "batch_size": 16}


def long(seed):
    return small("bgd", LONG, "continuous task-agnostic", BGD, seed=seed)


def silent(job, done, of):
    pass


def jobs_in(folder, configs, options=None):
    return [Job(config, folder / str(i), options or Options()) for i, config in enumerate(configs)]


def result_of(job):
    return (job.folder / "result.json").read_bytes()


def sessions_of(job):
    return json.loads((job.folder / "environment.json").read_text())["sessions"]


def iterations_of(folder):
    return [int(path.name.split("-")[1]) for path in RunFolder(folder).checkpoints()]


@pytest.fixture
def cluster(monkeypatch):
    """A Ray of two nodes with a core each; the second can be killed."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setattr(ray._private.ray_constants, "ENABLE_RAY_CLUSTER", False)  # loopback only
    before = signal.getsignal(signal.SIGTERM)
    folder = tempfile.mkdtemp(prefix="bgd-", dir="/tmp")  # the names of sockets must be short
    Path(folder, "ray").mkdir()
    monkeypatch.setenv("RAY_TMPDIR", folder)
    options = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    made = Cluster(initialize_head=True, head_node_args={**options, "include_dashboard": False})
    try:
        made.killable = made.add_node(**options)
        made.wait_for_nodes()
        yield made
    finally:
        made.shutdown()
        signal.signal(signal.SIGTERM, before)
        shutil.rmtree(folder, ignore_errors=True)


@needs_ray
def test_on_a_cluster_of_two_nodes_of_which_one_is_killed(cluster, tmp_path):
    configs = [long(seed=1), long(seed=2)]
    jobs, reference = jobs_in(tmp_path / "ray", configs, ALWAYS), jobs_in(tmp_path / "here", configs)
    kept = {}
    reports = {job.folder: [] for job in jobs}

    def kill(job, done, of):
        reports[job.folder].append(done)
        if not kept and all(min(iterations_of(job.folder), default=0) >= 20 for job in jobs):
            assert len(cluster.list_all_nodes()) == 2
            cluster.remove_node(cluster.killable, allow_graceful=False)
            kept.update({job.folder: max(iterations_of(job.folder)) for job in jobs})
            for each in reports.values():
                each.clear()

    outcomes = list(OnRay(address=cluster.address)(jobs, kill))
    assert kept, "no node was killed"
    assert not ray.is_initialized()
    assert sorted(o.job.folder for o in outcomes) == [job.folder for job in jobs]
    assert not [o.error for o in outcomes if o.error]
    # the run of the node that lives was left alone; the other one went on from its checkpoint: a restart is no session
    assert sorted(sessions_of(job) for job in jobs) == [1, 2]
    (moved,) = [job for job in jobs if sessions_of(job) == 2]
    assert 20 <= kept[moved.folder] < 1500
    assert min(reports[moved.folder]) > kept[moved.folder]
    assert not [o.error for o in here(reference, silent) if o.error]
    for a, b in zip(reference, jobs, strict=True):
        assert result_of(a) == result_of(b)
        assert (a.folder / "metrics.jsonl").read_bytes() == (b.folder / "metrics.jsonl").read_bytes()
