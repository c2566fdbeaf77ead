"""Run one or many, measure, save and resume."""

from bgd.runs.config import RunConfig, Setup
from bgd.runs.errors import Interrupted, RunError
from bgd.runs.folder import finished, read_config, read_result
from bgd.runs.options import Options
from bgd.runs.result import Machine, RunResult
from bgd.runs.run import run

__all__ = [
    "Interrupted",
    "Machine",
    "Options",
    "RunConfig",
    "RunError",
    "RunResult",
    "Setup",
    "finished",
    "read_config",
    "read_result",
    "run",
]
