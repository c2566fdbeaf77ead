"""What a cluster of ours listens on: this machine alone can reach it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")

LISTENS = """
import os
from pathlib import Path
from bgd.runs.executors.ray.cluster import connected, load_ray

def ours():
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"BGD_TEST_MARK=sockets" in (process / "environ").read_bytes():
                yield from (os.readlink(file) for file in (process / "fd").iterdir())
        except OSError:
            continue

with connected(ray := load_ray(), "local", 1):
    ray.get(ray.remote(lambda: 1).remote())
    sockets = set(ours())
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, address, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in sockets:
                print(address.rpartition(":")[0])
"""
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
"""127.0.0.1, the same in IPv6, and ::1, as Linux writes them."""


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads the sockets from /proc")
def test_ray_listens_on_loopback_only():
    environment = {**os.environ, "BGD_TEST_MARK": "sockets"}
    done = subprocess.run([sys.executable, "-c", LISTENS], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) >= 3
    assert set(done.stdout.split()) <= LOOPBACK
