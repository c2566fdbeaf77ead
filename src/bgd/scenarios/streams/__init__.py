"""Streams: the order in which batches of the tasks arrive."""

from bgd.scenarios.streams.augment import Augment
from bgd.scenarios.streams.base import Stream
from bgd.scenarios.streams.continuous import Continuous
from bgd.scenarios.streams.drift import Drift, blending, rotating
from bgd.scenarios.streams.drifting import Drifting
from bgd.scenarios.streams.epochs import Discrete, Joint
from bgd.scenarios.streams.prequential import Prequential

__all__ = [
    "Augment",
    "Continuous",
    "Discrete",
    "Drift",
    "Drifting",
    "Joint",
    "Prequential",
    "Stream",
    "blending",
    "rotating",
]
