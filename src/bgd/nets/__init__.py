"""Networks: plain modules, initialised from a generator of their own."""

from bgd.nets.convnet import ConvNet
from bgd.nets.init import INITS, he_, he_out_, initialise, torch_, xavier_
from bgd.nets.lenet import LeNet
from bgd.nets.mlp import MLP
from bgd.nets.precision import InBfloat16
from bgd.nets.registry import NETS, build_net
from bgd.nets.vgg import VGG, VGG11, VGG16
from bgd.nets.zenke import ZenkeNet

__all__ = [
    "INITS",
    "MLP",
    "NETS",
    "VGG",
    "VGG11",
    "VGG16",
    "ConvNet",
    "InBfloat16",
    "LeNet",
    "ZenkeNet",
    "build_net",
    "he_",
    "he_out_",
    "initialise",
    "torch_",
    "xavier_",
]
