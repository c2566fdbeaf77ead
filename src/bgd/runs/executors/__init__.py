"""Where runs are executed: in this process, in local processes, on a Ray cluster."""

from bgd.runs.executors.in_this_process import in_this_process
from bgd.runs.executors.processes import Processes
from bgd.runs.executors.ray.executor import OnRay
from bgd.runs.executors.types import Executor, Job, Outcome, ProgressCallback, attempt

__all__ = ["Executor", "Job", "OnRay", "Outcome", "Processes", "ProgressCallback", "attempt", "in_this_process"]
