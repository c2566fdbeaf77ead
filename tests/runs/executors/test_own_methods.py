"""Methods, nets, data and losses of the user's own, in this process and in workers."""

import sys
import textwrap

import pytest
import torch
from small_runs import small

from bgd.methods import SGD
from bgd.plugins import import_paths
from bgd.runs import Options, RunError, run
from bgd.runs.executors import Job, Processes, in_this_process
from bgd.runs.folder import read_machine
from bgd.runs.own_modules import import_folders
from bgd.runs.validation import validate

TETHER = """
    import torch
    from torch import nn

    from bgd.data import load
    from bgd.methods import SGD
    from tether_helpers import SCALE


    class Tether(SGD):
        upper_bound = True

        def __init__(self, net, outputs, *, lr=0.1):
            super().__init__(net, outputs, lr=lr * SCALE)


    def build(inputs, outputs, seed, width=3):
        torch.manual_seed(seed)
        features = inputs[0] * inputs[1] * inputs[2]
        return nn.Sequential(nn.Flatten(), nn.Linear(features, width), nn.Linear(width, outputs))


    def data():
        return load("digits")


    def loss(scores, y):
        return 2 * nn.functional.cross_entropy(scores, y, reduction="none")
"""
OWN = small(
    "tether:Tether",
    {"epochs": 1, "batch_size": 50},
    "domain",
    {"lr": 0.2},
    data={"name": "tether:data", "train": 300, "test": 100},
    net={"name": "tether:build", "settings": {"width": 7}},
    loss="tether:loss",
)


def silent(job, progress):
    pass


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the user's own module, which is not on the path of this process."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "tether.py").write_text(textwrap.dedent(TETHER))
    (own / "tether_helpers.py").write_text("SCALE = 0.5\n")
    yield str(own)
    for name in ("tether", "tether_helpers"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("executor", [in_this_process, Processes(2)], ids=["this process", "processes"])
def test_own_modules_are_imported_by_the_worker(executor, folder, tmp_path):
    jobs = [Job(OWN, tmp_path / str(i), Options(), (folder,)) for i in range(2)]
    outcomes = list(executor(jobs, silent))
    assert [outcome.error for outcome in outcomes] == [None, None]
    assert outcomes[0].result.upper_bound
    assert read_machine(jobs[0].folder).import_paths == [folder]
    assert folder not in sys.path


def test_a_run_from_python_records_where_its_modules_are(folder, tmp_path):
    with import_paths([folder]):
        validate(OWN)
        result = run(OWN, tmp_path / "run")
    assert result.machine.import_paths == [folder]
    assert result.machine.versions["data"]  # not published: its arrays are identified by a digest
    assert torch.tensor(result.R).shape == (3, 3)


def test_own_loss_and_net_are_used(folder, tmp_path):
    with import_paths([folder]):
        twice = run(OWN, tmp_path / "own")
        once = run(OWN.model_copy(update={"setup": OWN.setup.model_copy(update={"loss": None})}), tmp_path / "plain")
    assert twice.curve[0].loss > 1.5 * once.curve[0].loss


def test_a_missing_module_is_reported(tmp_path):
    with pytest.raises(RunError, match="'tether:Tether': cannot import tether"):
        validate(OWN)
    (outcome,) = in_this_process([Job(OWN, tmp_path / "run")], silent)
    assert "cannot import tether" in outcome.error


@pytest.fixture
def in_main(monkeypatch):
    """A method that is defined in the running script or notebook."""

    class Mine(SGD):
        pass

    monkeypatch.setattr(sys.modules["__main__"], "Mine", Mine, raising=False)
    return small("__main__:Mine", {"epochs": 1}, "domain")


def test_classes_of_a_notebook_run_in_this_process_only(in_main, tmp_path):
    (outcome,) = in_this_process([Job(in_main, tmp_path / "run")], silent)
    assert outcome.error is None
    assert import_folders(in_main) == []
    with pytest.raises(RunError, match="'__main__:Mine' is defined in the running script or notebook") as caught:
        list(Processes(2)([Job(in_main, tmp_path / "other")], silent))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "other").exists()
