"""What many tests share."""

import pytest
import torch
from hypothesis import settings

# Small tensors gain nothing from threads, and on a busy machine threads that wait for each other cost a lot.
torch.set_num_threads(1)

# The machine may be busy (no deadline), and a failure must come back on the next run (no randomness).
settings.register_profile("bgd", deadline=None, derandomize=True)
settings.load_profile("bgd")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Networks and data of a test are the same whatever ran before it."""
    torch.manual_seed(0)
