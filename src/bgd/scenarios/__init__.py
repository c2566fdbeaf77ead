"""What a scenario reveals to a learner, how tasks are built, and the streams that deliver them.

The four questions give a ``Scenario`` (``choose_scenario``; by name ``scenario``); ``split``, ``permute``, ``rotate``
and ``mix`` build tasks from data sets; a stream shows them over time (``Discrete``, ``Continuous``, ``Drifting``,
``Joint``), augments its images (``Augment``) where configured, and gives a learner one ``Batch`` at a time.
"""

from bgd.data.types import DataSet, Part
from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.heads import Heads, separate_heads, shared_heads
from bgd.scenarios.streams import (
    Augment,
    Continuous,
    Discrete,
    Drift,
    Drifting,
    Joint,
    Prequential,
    Stream,
    blending,
    rotating,
)
from bgd.scenarios.tasks import (
    PADDED_MNIST,
    UNIT,
    Normalisation,
    Normalise,
    Samples,
    Task,
    TaskSet,
    mix,
    permute,
    rotate,
    split,
)
from bgd.scenarios.tree import SCENARIOS, choose_scenario, scenario
from bgd.scenarios.types import Batch, Knowledge, Scenario

__all__ = [
    "PADDED_MNIST",
    "SCENARIOS",
    "UNIT",
    "Augment",
    "Batch",
    "Continuous",
    "DataSet",
    "Discrete",
    "Drift",
    "Drifting",
    "Heads",
    "Joint",
    "Knowledge",
    "Normalisation",
    "Normalise",
    "Part",
    "Prequential",
    "Samples",
    "Scenario",
    "ScenarioError",
    "Stream",
    "Task",
    "TaskSet",
    "blending",
    "choose_scenario",
    "mix",
    "permute",
    "rotate",
    "rotating",
    "scenario",
    "separate_heads",
    "shared_heads",
    "split",
]
