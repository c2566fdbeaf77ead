"""A run's process keeps its memory, where the allocator is glibc's and nobody has chosen otherwise."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import torch
from bgd.runs.environment import keep_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        a, b = torch.ones(3_000_000), torch.ones(12_000_000)  # 12 and 48 MB
        del a, b
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
before = faults()
kept = keep_memory()
faults()
print(int(kept), before, faults())
"""
glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")


def run_program(**environment: str) -> tuple[bool, int, int]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    kept, before, after = map(int, done.stdout.split())
    return bool(kept), before, after


@glibc
def test_freed_memory_is_used_again() -> None:
    kept, before, after = run_program()
    assert kept
    assert before > 200  # the large tensor alone has 11,719 pages, or 23 huge ones, and is cleared at every turn
    assert after < 100


@glibc
@pytest.mark.parametrize(
    "own", [{"MALLOC_TRIM_THRESHOLD_": "131072"}, {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"}]
)
def test_a_choice_of_ones_own_stands(own: dict[str, str]) -> None:
    kept, _, after = run_program(**own)
    assert not kept
    assert after > 200
