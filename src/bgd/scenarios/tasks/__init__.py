"""Tasks: built from data sets, with images transformed and normalised as batches are made."""

from bgd.scenarios.tasks.builders import mix, permute, rotate, split
from bgd.scenarios.tasks.normalise import PADDED_MNIST, UNIT, Normalisation, Normalise, fit_normalisation
from bgd.scenarios.tasks.transforms import Transform
from bgd.scenarios.tasks.types import Samples, Task, TaskSet, in_batches

__all__ = [
    "PADDED_MNIST",
    "UNIT",
    "Normalisation",
    "Normalise",
    "Samples",
    "Task",
    "TaskSet",
    "Transform",
    "fit_normalisation",
    "in_batches",
    "mix",
    "permute",
    "rotate",
    "split",
]
