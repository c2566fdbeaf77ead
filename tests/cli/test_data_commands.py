"""``bgd data``: its output, and the exit codes that scripts rely on."""

import gzip
import json
import struct
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import bgd.data
from bgd._version import __version__
from bgd.cli import main


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    monkeypatch.delenv("BGD_DATA", raising=False)
    monkeypatch.setenv("BGD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BGD_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys):
    """Run the command in this process: its exit code, stdout and stderr."""

    def run(*args):
        with pytest.raises(SystemExit) as end:
            main([str(arg) for arg in args])
        out = capsys.readouterr()
        return end.value.code, out.out, out.err

    return run


def put_mnist(folder, damaged=False):
    """Put a file under one of MNIST's names: not the published one."""
    folder.mkdir(parents=True)
    labels = bytes([0, 0, 8, 1]) + struct.pack(">I", 3) + bytes([1, 2, 3])
    data = gzip.compress(labels)
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(data[:-4] if damaged else data)


def test_version_and_help(run):
    assert run("--version") == (0, f"bgd {__version__}\n", "")
    code, out, _ = run("data", "--help")
    assert code == 0
    assert all(command in out for command in ("list", "fetch", "verify", "show"))


def test_wrong_usage_is_exit_code_2(run):
    assert run("data", "nonsense")[0] == 2


def test_list_shows_where_data_sets_are_and_their_licences(run, tmp_path):
    np.savez(tmp_path / "all.npz")
    (tmp_path / "own").mkdir()
    (tmp_path / "all.npz").rename(tmp_path / "own" / "all.npz")
    code, out, _ = run("data", "list", "--data", tmp_path)
    assert code == 0
    for name in bgd.data.names():
        assert name in out
    assert "non-commercial use only" in next(line for line in out.splitlines() if line.startswith("svhn"))
    code, out, _ = run("data", "list", "--data", tmp_path, "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert rows["digits"]["where"] == "embedded"
    assert rows["mnist"]["where"] is None
    assert rows["own"]["where"] == str(tmp_path / "own")


def test_fetch_names_missing_files_and_fetches_the_rest(run, tmp_path):
    code, out, err = run("data", "fetch", "mnist", "digits")
    assert code == 1
    assert out == "digits: verified (embedded)\n"
    assert err.startswith("bgd: mnist: no source has it")
    assert str(tmp_path / "cache" / "mnist") in err
    assert "Traceback" not in err
    code, out, _ = run("data", "fetch", "mnist", "digits", "--json")
    assert code == 1
    assert [row["from"] for row in json.loads(out)] == [None, "embedded"]


def test_fetch_of_a_folder_prints_its_path(run, tmp_path):
    for which in ("train", "test"):
        np.savez(tmp_path / f"{which}.npz", images=np.zeros((4, 8, 8), np.uint8), labels=[0, 1, 0, 1])
    assert run("data", "fetch", tmp_path)[:2] == (0, f"{tmp_path}: verified ({tmp_path})\n")


def test_fetch_without_names_and_with_a_wrong_one(run):
    assert "name a data set, or --all" in run("data", "fetch")[2]
    assert run("data", "fetch", "cifar1O")[2] == "bgd: no data set 'cifar1O': did you mean 'cifar10'?\n"


def test_verify_names_the_problem_of_each_file(run, tmp_path):
    assert run("data", "verify")[0] == 0
    assert run("data", "verify", "mnist")[0] == 1
    put_mnist(tmp_path / "data" / "mnist")
    code, out, err = run("data", "verify", "--data", tmp_path / "data")
    assert (code, "unknown" in out) == (1, True)
    assert "t10k-labels-idx1-ubyte.gz: not the published file" in err
    put_mnist(tmp_path / "bad" / "mnist", damaged=True)
    code, out, _ = run("data", "verify", "mnist", "--data", tmp_path / "bad", "--json")
    assert code == 1
    assert [(row["name"], row["status"]) for row in json.loads(out)] == [("mnist", "damaged")]


def test_verify_accepts_a_listed_file(run, tmp_path):
    put_mnist(tmp_path / "data" / "mnist")
    path = tmp_path / "data" / "mnist" / "t10k-labels-idx1-ubyte.gz"
    sums = subprocess.run(["sha256sum", path.name], cwd=path.parent, capture_output=True, check=True).stdout
    (path.parent / "SHA256SUMS").write_bytes(sums)
    code, out, err = run("data", "verify", "--data", tmp_path / "data")
    assert (code, err) == (0, "")
    assert "listed" in out


def test_show_writes_a_picture_and_prints_its_path(run, tmp_path):
    code, out, _ = run("data", "show", "digits", "--per-class", 3)
    assert (code, out) == (0, f"{tmp_path / 'digits.png'}\n")
    with Image.open(tmp_path / "digits.png") as picture:
        assert np.asarray(picture).std() > 10
    code, out, _ = run("data", "show", "digits", "--out", tmp_path / "other.png", "--part", "test")
    assert (code, (tmp_path / "other.png").exists()) == (0, True)
    code, _, err = run("data", "show", "digits", "--part", "tests")
    assert (code, err) == (2, "bgd: no part 'tests': there are train and test\n")


def test_show_prints_the_note_of_a_data_set(run, tmp_path, monkeypatch):
    from dataclasses import replace

    monkeypatch.setattr(bgd.data, "load", lambda name, data: replace(load_digits(), note="only half of it"))
    load_digits = bgd.data.formats.digits.load
    assert "digits: only half of it" in run("data", "show", "digits")[2]


def test_wrong_folder(run, tmp_path):
    code, _, err = run("data", "list", "--data", tmp_path / "none")
    assert (code, err) == (2, f"bgd: {tmp_path / 'none'}, named as the data folder, is not a folder\n")


def test_as_a_process(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "bgd.cli", "data", "fetch", "mnits"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "bgd: no data set 'mnits': did you mean 'mnist'?\n"
