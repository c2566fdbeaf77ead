"""Fixtures of the optimizer's tests."""

import pytest
from problems import Problem


@pytest.fixture
def problem() -> Problem:
    return Problem()
