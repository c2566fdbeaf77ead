"""Installed packages whose entry points are broken or lead to the wrong kind of object: one line, no other suffers."""

import json
import re

import pytest
from own_package import own_package

from bgd.cli import main
from bgd.data import load as load_data
from bgd.errors import BGDError
from bgd.methods import find_likelihood, find_method
from bgd.nets.registry import build_net

SEEKERS = {
    "bgd.methods": find_method,
    "bgd.nets": lambda name: build_net(name, (1, 6, 6), 5),
    "bgd.data": load_data,
    "bgd.losses": find_likelihood,
}
"""What looks for a name in a group."""

MODULES = {
    "raise RuntimeError('no GPU:\\n  buy one')": "cannot import ownpackage (no GPU: buy one): fix it",
    "import sys\nsys.exit()": "cannot import ownpackage (SystemExit): fix it",
    "import no_such_module": "No module named 'no_such_module'): install it",
    "def broken(:": "cannot import ownpackage (invalid syntax",
    "assert False": "cannot import ownpackage (AssertionError): fix it",
    "def __getattr__(name):\n    raise OSError('gone')": "'thing' fails (gone): fix ownpackage",
    "other = 1": "ownpackage has no 'thing'",
}

KINDS = """
from bgd.methods import Base

class Fails(Base):
    def __init__(self, *args, **kwargs):
        raise RuntimeError("not\\ntoday")

class Needy(Base):
    needs = "nothing"

class Loss:
    classification, loss, score_gradients = True, None, None
    def __init__(self):
        raise RuntimeError("not\\ntoday")

def fails(**keywords):
    raise RuntimeError("not\\ntoday")

number, none, text, array = 7, None, "text", []
"""

WRONG = {
    "bgd.methods": ("number", "none", "text", "fails", "Loss", "Needy"),
    "bgd.nets": ("number", "none", "text", "fails", "Loss", "Fails"),
    "bgd.data": ("number", "none", "text", "fails", "Loss", "Fails"),
    "bgd.losses": ("number", "none", "text", "Loss", "Fails", "array"),
}


def one_line_about(name, seek):
    with pytest.raises(BGDError) as caught:
        seek(name)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("group", SEEKERS)
@pytest.mark.parametrize("code", MODULES)
def test_a_module_that_cannot_be_imported(group, code, tmp_path):
    with own_package(tmp_path, code, {group: {"theirs": "ownpackage:thing"}}):
        assert MODULES[code] in one_line_about("theirs", SEEKERS[group])


@pytest.mark.parametrize(("group", "kind"), [(group, kind) for group, kinds in WRONG.items() for kind in kinds])
def test_the_wrong_kind_of_object(group, kind, tmp_path):
    with own_package(tmp_path, KINDS, {group: {"theirs": f"ownpackage:{kind} [extra]"}}):
        assert re.search("theirs|ownpackage", one_line_about("theirs", SEEKERS[group]))


@pytest.mark.parametrize("value", ["ownpackage", ":thing", "ownpackage:", "", "a b:c", "..:x"])
def test_an_entry_point_that_names_no_object(value, tmp_path):
    with own_package(tmp_path, "", {"bgd.methods": {"theirs": value}}):
        one_line_about("theirs", find_method)


def test_the_list_of_methods_shows_the_broken_ones_beside_the_others(tmp_path, capsys):
    points = {kind: f"ownpackage:{kind}" for kind in WRONG["bgd.methods"]}
    with own_package(tmp_path, KINDS, {"bgd.methods": points | {"gone": "nowhere:thing"}}):
        with pytest.raises(SystemExit, match="0"):
            main(["methods", "--json"])
        found = {record["name"]: record["about"] for record in json.loads(capsys.readouterr().out)}
    assert all(found[name].startswith("cannot be used: ") for name in (*points, "gone"))
    assert "cannot be used" not in found["bgd"]


def test_damaged_metadata_of_a_package(tmp_path, capsys):
    with own_package(tmp_path, "", {"bgd.methods": {"theirs": "ownpackage:thing"}}):
        (info,) = tmp_path.glob("*.dist-info")
        (info / "entry_points.txt").write_text("[bgd.methods]\nno equals sign\n")
        assert find_method("sgd").__name__ == "SGD"
        assert "entry points" in one_line_about("theirs", find_method)
        with pytest.raises(SystemExit, match="2"):
            main(["methods"])
        assert capsys.readouterr().err.count("\n") == 1
