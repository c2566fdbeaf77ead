"""One small stream of every kind, and batches as bytes to compare them."""

import pytest
import torch
from small_data import make_data

from bgd.scenarios import (
    Batch,
    Continuous,
    Discrete,
    Drifting,
    Joint,
    Stream,
    blending,
    permute,
    rotate,
    rotating,
    scenario,
    split,
)

AGNOSTIC, CONTINUOUS = scenario("discrete task-agnostic"), scenario("continuous task-agnostic")


def make_streams(seed: int = 3, **options) -> dict[str, Stream]:
    data, other = make_data(), make_data(seed=7, name="other")
    permuted = permute(data, 3, shared_head=True)
    rotated = rotate(data, [0, 30, 60], shared_head=True)
    return {
        "discrete split": Discrete(
            split(data, 5, shared_head=False), scenario("class"), epochs=2, batch_size=8, seed=seed
        ),
        "discrete float": Discrete(
            permute(make_data(dtype=torch.float32), 2, shared_head=True), AGNOSTIC, epochs=2, batch_size=16, seed=seed
        ),
        "discrete permuted": Discrete(permuted, AGNOSTIC, epochs=3, batch_size=16, seed=seed, **options),
        "continuous permuted": Continuous(permuted, CONTINUOUS, iterations=150, batch_size=16, seed=seed, **options),
        "continuous rotated": Continuous(
            rotated, CONTINUOUS, iterations=70, batch_size=16, beta=2.5, seed=seed, **options
        ),
        "joint": Joint(permuted, scenario("domain"), epochs=2, batch_size=16, seed=seed, **options),
        "drifting rotation": Drifting(rotating(data), CONTINUOUS, iterations=70, batch_size=16, seed=seed),
        "drifting blend": Drifting(blending(data, other), CONTINUOUS, iterations=70, batch_size=16, seed=seed),
    }


KINDS = (
    "discrete split",
    "discrete float",
    "discrete permuted",
    "continuous permuted",
    "continuous rotated",
    "joint",
    "drifting rotation",
    "drifting blend",
)
every_kind = pytest.mark.parametrize("kind", KINDS)


def as_bytes(batch: Batch) -> tuple:
    task = batch.task.numpy().tobytes() if isinstance(batch.task, torch.Tensor) else batch.task
    return batch.x.numpy().tobytes(), batch.y.numpy().tobytes(), task
