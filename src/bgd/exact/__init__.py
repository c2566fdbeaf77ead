"""The exact Bayesian linear head on fixed features: learns in closed form, whatever the order of the data."""

from bgd.exact.evidence import gaussian, noise_variance, student_t
from bgd.exact.forgetting import discount, fade, forget, restore
from bgd.exact.head import (
    ExactError,
    Head,
    Innovation,
    Prediction,
    absorb,
    absorb_,
    add_outputs,
    init,
    innovation,
    predict,
    state_of,
    update,
)
from bgd.exact.merging import merge

__all__ = [
    "ExactError",
    "Head",
    "Innovation",
    "Prediction",
    "absorb",
    "absorb_",
    "add_outputs",
    "discount",
    "fade",
    "forget",
    "gaussian",
    "init",
    "innovation",
    "merge",
    "noise_variance",
    "predict",
    "restore",
    "state_of",
    "student_t",
    "update",
]
