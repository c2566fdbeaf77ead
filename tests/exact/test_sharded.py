"""On two real nodes of Ray: the sums of one machine, and nothing is lost with a worker."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
import torch

from bgd.exact import ExactError, statistics
from bgd.exact.features import Fourier
from bgd.exact.sharded import learn_shards

try:
    import ray
    from ray.cluster_utils import Cluster
except ImportError:
    ray = None

needs_ray = pytest.mark.skipif(ray is None or not Path("/proc").is_dir(), reason="needs Ray, and a system with /proc")
SHARDS = 6


def shard(number):
    generator = torch.Generator().manual_seed(number)
    x = torch.randn(64, 3, generator=generator)
    return [(a, a[:, :2].sin()) for a in x.split(16)]


def features():
    return Fourier((3,), 25).fit(shard(0)[0][0])


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_shards_add_up_to_the_whole_stream():
    whole, fitted = statistics.empty(26, 2), features()
    for number in range(SHARDS):
        for x, y in shard(number):
            statistics.add_(whole, fitted(x), y)
    sums = learn_shards(shard, SHARDS, fitted, outputs=2)
    torch.testing.assert_close(sums.gram.tril(), whole.gram.tril(), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(statistics.solve(sums).mean, statistics.solve(whole).mean, rtol=1e-8, atol=1e-8)


def test_features_must_be_fitted():
    with pytest.raises(ExactError, match=r"must be fitted before shards share them: call fit\(x\)"):
        learn_shards(shard, 1, Fourier((3,), 5), outputs=2)


@pytest.fixture
def two_nodes():
    with pytest.MonkeyPatch.context() as patch:
        folder = tempfile.mkdtemp(prefix="bgd-", dir="/tmp")  # the names of sockets must be short
        Path(folder, "ray").mkdir()
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setattr(ray._private.ray_constants, "ENABLE_RAY_CLUSTER", False)  # loopback only
        before = signal.getsignal(signal.SIGTERM)
        node = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        try:
            cluster.add_node(**node)
            cluster.wait_for_nodes()
            ray.init(address=cluster.address, log_to_driver=False)
            yield
        finally:
            ray.shutdown()
            cluster.shutdown()
            signal.signal(signal.SIGTERM, before)
            shutil.rmtree(folder, ignore_errors=True)


@needs_ray
def test_on_two_nodes_and_with_a_lost_worker_the_same_bits(two_nodes, tmp_path):
    killed = tmp_path / "killed"

    def shard_once_lost(number):
        yield from (batches := shard_by_value(number))[:2]
        if number == 4 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches[2:]

    # functions of this module would be imported by the workers, which do not have it
    def shard_by_value(number):
        generator = torch.Generator().manual_seed(number)
        x = torch.randn(64, 3, generator=generator)
        return [(a, a[:, :2].sin()) for a in x.split(16)]

    sums = learn_shards(shard_once_lost, SHARDS, features(), outputs=2, ray=True)
    assert killed.exists()
    assert same(sums, learn_shards(shard, SHARDS, features(), outputs=2))
