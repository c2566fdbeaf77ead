"""Data sets by name: built in, from installed packages, from modules and from folders."""

import os
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from small_data import save_npz

import bgd.data
from bgd import plugins
from bgd.data import DataError

# the machine's own data, before the tests are isolated from it
MACHINE_DATA = os.environ.get("BGD_DATA")
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 3, 5, 4), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def test_by_name_in_the_users_folder_and_by_path(tmp_path, monkeypatch):
    save_npz(tmp_path / "mine", x=IMAGES, y=LABELS)
    assert bgd.data.load("mine", tmp_path).name == "mine"
    assert bgd.data.load(tmp_path / "mine").name == "mine"
    monkeypatch.setenv("BGD_DATA", str(tmp_path))
    assert bgd.data.load("mine").name == "mine"
    assert bgd.data.available()["mine"] == str(tmp_path / "mine")
    with pytest.raises(DataError, match=r"no data set 'mime': did you mean 'mine'\?"):
        bgd.data.load("mime")
    with pytest.raises(DataError, match=r"no data set 'zzz': choose one of digits, mnist"):
        bgd.data.load("zzz")
    monkeypatch.delenv("BGD_DATA")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"for the folder of that name write \./mine"):
        bgd.data.load("mine")
    assert bgd.data.load("./mine").name == "mine"
    with pytest.raises(DataError, match=r"is not a folder"):
        bgd.data.load(tmp_path / "none")


MODULE = """
import numpy as np
import torch
from bgd.data import DataError, DataSet, Part

IMAGES = np.arange(4 * 25, dtype=np.uint8).reshape(4, 5, 5)
LABELS = np.array([0, 1, 0, 1])

def arrays():
    return IMAGES, LABELS, IMAGES[:2], LABELS[:2]

def tensors():
    return [torch.from_numpy(array) for array in arrays()]

def channels_first():
    x = torch.rand(4, 9, 8, 1)
    return x, torch.tensor([0, 1, 0, 1]), x, torch.tensor([0, 1, 0, 1])

def data_set():
    part = Part(torch.zeros(2, 1, 4, 4), torch.tensor([0, 1]))
    return DataSet("pets", part, part, ("cat", "dog"))

def three():
    return arrays()[:3]

def nothing():
    pass

def half_labels():
    return IMAGES, LABELS / 2, IMAGES, LABELS

def other_shape():
    return IMAGES, LABELS, IMAGES[:, :4], LABELS

def ragged():
    return [[1, 2], [3]], LABELS, IMAGES, LABELS

def failing():
    return {}["key"]

def own_error():
    raise DataError("run download.sh first")
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's own, and an installed package with an entry point for it."""
    (tmp_path / "their_data.py").write_text(MODULE)
    (tmp_path / "their_broken.py").write_text("raise RuntimeError('imported')")
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        textwrap.dedent("""\
        [bgd.data]
        pets = their_data:data_set
        squares = their_data:arrays
        broken = their_broken:load
        """)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins._installed.cache_clear()
    yield
    plugins._installed.cache_clear()
    for name in ("their_data", "their_broken"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("function", ["arrays", "tensors"])
def test_a_function_that_returns_arrays(module, function):
    loaded = bgd.data.load(f"their_data:{function}")
    assert loaded.name == f"their_data:{function}"
    assert loaded.train.images.shape == (4, 1, 5, 5)
    assert loaded.train.images.flatten().tolist() == list(range(100))
    assert (loaded.train.labels.tolist(), loaded.test.labels.tolist()) == ([0, 1, 0, 1], [0, 1])
    assert (loaded.classes, loaded.note) == (("0", "1"), "")


def test_a_tensor_is_channels_first_whatever_its_shape(module):
    assert bgd.data.load("their_data:channels_first").train.images.shape == (4, 9, 8, 1)


def test_a_function_that_returns_a_data_set(module):
    loaded = bgd.data.load("their_data:data_set")
    assert (loaded.name, loaded.classes) == ("pets", ("cat", "dog"))


def test_entry_points_are_listed_without_importing_them_and_loaded_by_name(module):
    assert bgd.data.names()[-3:] == ("pets", "squares", "broken")
    assert bgd.data.names()[:-3] == bgd.data.published_names()
    assert bgd.data.available()["broken"] == "entry point"
    assert "their_data" not in sys.modules
    assert "their_broken" not in sys.modules
    assert bgd.data.load("pets").classes == ("cat", "dog")
    assert bgd.data.load("squares").name == "squares"
    with pytest.raises(DataError, match=r"no data set 'square': did you mean 'squares'\?"):
        bgd.data.load("square")
    with pytest.raises(DataError, match=r"cannot import their_broken \(imported\)"):
        bgd.data.load("broken")


def test_an_entry_point_comes_before_a_folder_of_its_name(module, tmp_path):
    save_npz(tmp_path / "pets", x=IMAGES, y=LABELS)
    assert bgd.data.load("pets", tmp_path).classes == ("cat", "dog")
    assert bgd.data.available(tmp_path)["pets"] == "entry point"
    assert bgd.data.load(tmp_path / "pets").classes == ("0", "1", "2")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("three", "its function returned a tuple of 3: return a bgd.data.DataSet, or the four arrays"),
        ("nothing", "its function returned a NoneType: return a bgd.data.DataSet"),
        ("half_labels", r"their_data:half_labels \(train\): labels must be integers"),
        ("other_shape", r"train images are uint8 \(4, 1, 5, 5\) but test images are uint8 \(4, 1, 4, 5\)"),
        ("ragged", r"their_data:ragged \(train\): not an array of numbers"),
        ("failing", "data set 'their_data:failing': its function failed with KeyError: 'key'"),
        ("own_error", "^run download.sh first$"),
        ("IMAGES", "data set 'their_data:IMAGES' is a ndarray: name a function that returns the data"),
        ("array", r"has no 'array': did you mean 'arrays'\?"),
    ],
)
def test_what_a_function_returns_is_validated(module, function, message):
    with pytest.raises(DataError, match=message) as error:
        bgd.data.load(f"their_data:{function}")
    assert "\n" not in str(error.value)


def test_a_module_that_cannot_be_found_is_named():
    with pytest.raises(DataError, match=r"data set 'no_such:load': cannot import no_such"):
        bgd.data.load("no_such:load")


@pytest.mark.skipif(
    MACHINE_DATA is None or not Path(MACHINE_DATA, "mnist").is_dir(),
    reason="BGD_DATA does not name a folder that holds MNIST",
)
def test_real_mnist():
    mnist = bgd.data.load("mnist", MACHINE_DATA)
    assert mnist.train.images.shape == (60_000, 1, 28, 28)
    assert mnist.train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert mnist.test.labels.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert float(mnist.train.images.double().mean() / 255) == pytest.approx(0.1307, abs=5e-5)
