"""Own code from the command line, through the console script: modules are found where the command runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bgd.__main__ import main

METHOD = """
import torch
from bgd.methods import Base

class Plain(Base):
    def __init__(self, net, outputs, *, lr=0.1):
        super().__init__(net, outputs, torch.optim.SGD(net.parameters(), lr=lr))
"""
NET = """
from torch import nn

def build(inputs, outputs, *, width=7):
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs[0] * inputs[1] * inputs[2], width), nn.Linear(width, outputs))
"""
SMOKE = ["digits", "--preset", "smoke", "--column", "new classes, no replay"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "here" / "mycode"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "plain.py").write_text(METHOD)
    (package / "nets.py").write_text(NET)
    return tmp_path / "here"


def bgd(*arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    command = [str(Path(sys.executable).parent / "bgd"), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def in_this_process(monkeypatch, folder, *arguments) -> int:
    """The exit code of a command, without the start of a process."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["bgd", *arguments])
    for name in [name for name in sys.modules if name.partition(".")[0] == "mycode"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_a_method_is_described(folder, monkeypatch, capsys):
    assert in_this_process(monkeypatch, folder, "methods", "mycode.plain:Plain") == 0
    assert "lr" in capsys.readouterr().out


def test_a_method_and_a_net_by_name(folder):
    row = ["--row", "mycode.plain:Plain", "--set", "net=mycode.nets:build", "--out", "out", "--jobs", "2", "--json"]
    done = bgd("run", *SMOKE, *row, cwd=folder)
    assert done.returncode == 0, done.stderr
    [run] = json.loads(done.stdout)["runs"]
    assert run["error"] is None
    config = json.loads((folder / run["folder"] / "config.json").read_text())
    assert (config["method"], config["setup"]["net"]["name"]) == ("mycode.plain:Plain", "mycode.nets:build")


def test_an_interrupted_run_is_resumed_from_another_folder(folder, tmp_path, monkeypatch):
    serial = ["--executor", "serial", "--out", str(tmp_path / "out")]
    assert in_this_process(monkeypatch, folder, "run", *SMOKE, "--row", "mycode.plain:Plain", *serial) == 0
    [result] = (tmp_path / "out").rglob("result.json")
    before = result.read_bytes()
    result.unlink()
    done = bgd("resume", str(tmp_path / "out"), "--executor", "serial", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert result.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--row", "nocode.plain:Plain"], "cannot import nocode.plain"),
        (["--set", "net=mycode.nets:bild"], "mycode.nets has no 'bild': did you mean 'build'?"),
        (["--set", "net=vgg61"], "no net 'vgg61': did you mean 'vgg16'?"),
        (["--seeds", "1,1,-2"], "whole numbers"),
    ],
)
def test_wrong_names_end_with_one_line_and_exit_code_2(folder, arguments, message, monkeypatch, capsys):
    assert in_this_process(monkeypatch, folder, "run", *SMOKE, "--out", "out", *arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (folder / "out").exists()
