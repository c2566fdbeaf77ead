"""Learners: one method per file, named as the paper names it.

>>> import torch
>>> from bgd.scenarios.heads import Heads
>>> from bgd.scenarios.types import Knowledge, Scenario
>>> domain = Scenario("domain", Knowledge.TASK_ID, task_in_testing=False, shared_head=True)
>>> learner = create("online-ewc", torch.nn.Linear(4, 2), Heads(2, ((0, 1),)), domain, coefficient=700)
>>> learner.observe(torch.zeros(8, 4), torch.ones(8, dtype=torch.int64)) > 0
True
"""

from bgd.methods.adagrad import Adagrad
from bgd.methods.adam import Adam
from bgd.methods.badam import BAdamLearner
from bgd.methods.bbb import BBB
from bgd.methods.bgd import BGDLearner
from bgd.methods.bong import BONGLearner
from bgd.methods.common.base import Base, generator_for
from bgd.methods.common.likelihoods import LIKELIHOODS, Categorical, Gaussian, Likelihood, find_likelihood
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.penalised import Penalised
from bgd.methods.common.posterior import PosteriorLearner
from bgd.methods.common.types import Learner, MethodError
from bgd.methods.continual_backprop import ContinualBackpropLearner
from bgd.methods.ewc import EWC
from bgd.methods.foovb import FOOVBLearner
from bgd.methods.ivon import IVONLearner
from bgd.methods.kfac import KFAC
from bgd.methods.l2 import L2
from bgd.methods.laplace import Laplace
from bgd.methods.lwf import LwF
from bgd.methods.mas import MAS
from bgd.methods.mesu import MESULearner
from bgd.methods.noisy_adam import NoisyAdam
from bgd.methods.noisy_kfac import NoisyKFAC
from bgd.methods.offline import Offline
from bgd.methods.online_ewc import OnlineEWC
from bgd.methods.registry import METHODS, create, find_method, settings_of
from bgd.methods.sgd import SGD
from bgd.methods.si import SI
from bgd.methods.upgd import UPGDLearner
from bgd.methods.vcl import VCL

__all__ = [
    "BBB",
    "EWC",
    "KFAC",
    "L2",
    "LIKELIHOODS",
    "MAS",
    "METHODS",
    "SGD",
    "SI",
    "VCL",
    "Adagrad",
    "Adam",
    "BAdamLearner",
    "BGDLearner",
    "BONGLearner",
    "Base",
    "Categorical",
    "ContinualBackpropLearner",
    "FOOVBLearner",
    "Gaussian",
    "IVONLearner",
    "Laplace",
    "Learner",
    "Likelihood",
    "LwF",
    "MESULearner",
    "MethodError",
    "NoisyAdam",
    "NoisyKFAC",
    "Offline",
    "OnlineEWC",
    "Outputs",
    "Penalised",
    "PosteriorLearner",
    "UPGDLearner",
    "create",
    "find_likelihood",
    "find_method",
    "generator_for",
    "settings_of",
]
