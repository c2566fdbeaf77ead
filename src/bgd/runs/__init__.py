"""Run one or many, measure, save and resume."""

from bgd.runs.folder import finished, read_config, read_result
from bgd.runs.interrupt import Interrupted
from bgd.runs.run import Options, run
from bgd.runs.types import Machine, RunConfig, RunError, RunResult, Setup

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
