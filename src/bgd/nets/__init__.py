"""Networks: plain modules, initialised from a generator of their own."""

from bgd.nets.init import INITS, he_, initialise, torch_, xavier_
from bgd.nets.mlp import MLP

__all__ = ["INITS", "MLP", "he_", "initialise", "torch_", "xavier_"]
