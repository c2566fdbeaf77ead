"""Randomness of layers comes from the run's seed, and the caller's generators are restored."""

import numpy as np
import pytest
import torch
from small_runs import CONV_RUNS, RUNS

from bgd.runs import Options, run
from bgd.runs.build import build_learner, build_stream
from bgd.runs.randomness import own_randomness


def test_dropout_depends_on_the_seed(tmp_path):
    """The run equals a plain loop under the run's own randomness, and differs from one under another."""
    config = CONV_RUNS["sgd, zenke"]

    def losses(seed):
        with own_randomness(seed):
            stream = build_stream(config)
            learner = build_learner(config, stream)
            return [learner.observe(*batch) for batch in stream]

    points = [point.loss for point in run(config, tmp_path).curve]
    ours = losses(config.seed)
    ends = [len(ours) * (k + 1) // 3 for k in range(3)]
    assert points == [np.mean(ours[a:b]) for a, b in zip([0, *ends], ends, strict=False)]
    assert losses(config.seed + 1) != ours


def test_generators_are_restored_after_an_error(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    before = torch.get_rng_state()

    def fail():
        assert torch.backends.cudnn.deterministic
        assert not torch.backends.cudnn.benchmark
        torch.rand(5).reshape(2, 2)

    with pytest.raises(RuntimeError, match="shape"), own_randomness(3):
        fail()
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.backends.cudnn.benchmark
    assert not torch.backends.cudnn.deterministic


def test_global_randomness_and_threads_are_restored(tmp_path):
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    run(RUNS["bgd, discrete"], tmp_path, Options(threads=2))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
