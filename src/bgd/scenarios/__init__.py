"""What a learner is told, how tasks are cut, and the streams that deliver them.

The four questions give a ``Scenario`` (``ask``, ``scenario``); a data set is prepared (``pad``, ``subset``,
``to_shape``, ``limit``) and cut into tasks (``split``, ``permute``, ``rotate``, ``mix``); a stream shows them over
time (``Discrete``, ``Continuous``, ``Drifting``, ``Joint``), augments its images (``Augment``) if asked to, and hands a
learner one ``Batch`` at a time.
"""

from bgd.data.types import DataSet, Part
from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.heads import Heads, separate_heads, shared_heads
from bgd.scenarios.streams.augment import Augment
from bgd.scenarios.streams.base import Stream
from bgd.scenarios.streams.continuous import Continuous
from bgd.scenarios.streams.discrete import Discrete, Joint
from bgd.scenarios.streams.drifting import Drift, Drifting, blending, rotating
from bgd.scenarios.tasks.builders import mix, permute, rotate, split
from bgd.scenarios.tasks.pixels import PADDED_MNIST, UNIT, Normalise, own_statistics
from bgd.scenarios.tasks.prepare import limit, pad, subset, to_shape
from bgd.scenarios.tasks.types import Samples, Task, TaskSet, in_batches
from bgd.scenarios.tree import QUESTIONS, SCENARIOS, TREE, ask, scenario
from bgd.scenarios.types import Batch, Knowledge, Scenario

__all__ = [
    "PADDED_MNIST",
    "QUESTIONS",
    "SCENARIOS",
    "TREE",
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
    "Normalise",
    "Part",
    "Samples",
    "Scenario",
    "ScenarioError",
    "Stream",
    "Task",
    "TaskSet",
    "ask",
    "blending",
    "in_batches",
    "limit",
    "mix",
    "own_statistics",
    "pad",
    "permute",
    "rotate",
    "rotating",
    "scenario",
    "separate_heads",
    "shared_heads",
    "split",
    "subset",
    "to_shape",
]
