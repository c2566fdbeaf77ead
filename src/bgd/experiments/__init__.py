"""Each table and figure of the paper as a declared comparison, and users' own from TOML files or Python.

>>> find("labels-trick").paper["BGD"]["+ labels trick"].mean
46.34
"""

from bgd.experiments.declaration import Experiment, ExperimentError, Preset, Reported, Row
from bgd.experiments.plan import Plan, make_plan
from bgd.experiments.registry import EXPERIMENTS, find, load

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "ExperimentError",
    "Plan",
    "Preset",
    "Reported",
    "Row",
    "find",
    "load",
    "make_plan",
]
