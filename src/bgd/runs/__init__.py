"""Run one or many, measure, save and resume."""

from bgd.runs.config import RunConfig, Setup
from bgd.runs.errors import RunError
from bgd.runs.folder import finished, read_config, read_result
from bgd.runs.result import Machine, RunResult
from bgd.runs.run import Options, run
from bgd.runs.stop import Interrupted

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
