"""What many tests share."""

from collections.abc import Iterator

import pytest
import torch
from frozen import freeze
from hypothesis import settings

# Small tensors gain nothing from threads, and on a busy machine threads that wait for each other cost a lot.
torch.set_num_threads(1)

# The machine may be busy (no deadline), and a failure must come back on the next run (no randomness).
settings.register_profile("bgd", deadline=None, derandomize=True)
settings.load_profile("bgd")


def pytest_collection_finish(session: pytest.Session) -> None:
    """All is imported: see tests/helpers/frozen.py."""
    freeze()


@pytest.fixture(autouse=True, scope="session")
def _own_figures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Figures that tests draw are kept apart from the user's, and reused from test to test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bgd.report.figures.cache.cache_folder", lambda: tmp_path_factory.getbasetemp() / "cache")
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """What a test kills is a process and not the machine: the system keeps what was written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Networks and data of a test are the same whatever ran before it."""
    torch.manual_seed(0)
