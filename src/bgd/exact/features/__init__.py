"""Feature maps beneath the exact head: modules with a ``dim``, seeded, whose state dict is all that they are."""

from bgd.exact.features.base import Features
from bgd.exact.features.network import Network, penultimate
from bgd.exact.features.patches import Patches
from bgd.exact.features.projections import Fourier, Identity, RandomReLU

__all__ = ["Features", "Fourier", "Identity", "Network", "Patches", "RandomReLU", "penultimate"]
