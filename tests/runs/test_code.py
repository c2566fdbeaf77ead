"""The digest of a run's code: changes that matter change it, others do not."""

import sys
from pathlib import Path

import pytest

from bgd.plugins import import_paths
from bgd.runs import code
from bgd.runs.code import ROOT, code_digest, import_closure
from bgd.runs.config import RunConfig
from bgd.scenarios import Discrete

METHOD = '''"""A method."""

from bgd.methods import SGD


class Mine(SGD):
    """With a docstring."""

    def after_step(self, batch):  # a comment
        from mine_helpers import steps

        return steps(1)
'''


@pytest.fixture
def digest_of(tmp_path):
    """The digest of a run with the method in these files, as a new process would compute it."""

    def digest(**files):
        for name, content in files.items():
            (tmp_path / f"{name}.py").write_text(content)
            sys.modules.pop(name, None)
        for cached in (code._digest, code._parse, code._hash_module):
            cached.cache_clear()
        with import_paths([str(tmp_path)]):
            return code_digest(RunConfig(method="mine:Mine"))

    yield digest
    for name in ("mine", "mine_helpers", "unrelated"):
        sys.modules.pop(name, None)
    code._digest.cache_clear()


HELPERS = "def steps(n):\n    return n\n"


def test_comments_docstrings_and_format_make_no_difference(digest_of):
    before = digest_of(mine=METHOD, mine_helpers=HELPERS)
    assert before == digest_of(mine=METHOD.replace("With a", "With another").replace("# a comment", "# another"))
    assert before == digest_of(mine=METHOD.replace('    """With a docstring."""\n', ""))
    assert before == digest_of(mine_helpers="def steps(n):\n\n    return (n)\n")
    assert before == digest_of(unrelated="x = 1\n")


def test_changes_of_the_code_change_the_digest(digest_of):
    before = digest_of(mine=METHOD, mine_helpers=HELPERS)
    assert before != digest_of(mine=METHOD.replace("steps(1)", "steps(2)"))
    assert before == digest_of(mine=METHOD)
    assert before != digest_of(mine_helpers=HELPERS.replace("return n", "return n + 1"))  # imported in a function


def test_each_method_and_net_has_its_own_digest():
    digests = {code_digest(RunConfig(method=name)) for name in ("sgd", "adam", "ewc", "bgd")}
    digests.add(code_digest(RunConfig(method="sgd", setup={"net": {"name": "lenet"}})))
    assert len(digests) == 5
    same = {code_digest(RunConfig(method="sgd", seed=seed, settings={"lr": seed})) for seed in (1, 2)}
    assert same == {code_digest(RunConfig(method="sgd"))}


def test_the_closure_holds_what_a_run_passes_through_and_nothing_else():
    package = Path(code.__file__).parents[1]
    closure = import_closure({ROOT: package / "runs" / "run.py"})
    for name in ("bgd.runs.runner", "bgd.runs.evaluate", Discrete.__module__, "bgd.optim.update"):
        assert name in closure
    folders = {path.relative_to(package).parts[0] for path in closure.values()}
    assert not folders & {"cli", "report", "experiments", "_version.py"}
    assert not any(name.startswith("bgd.runs.executors") for name in closure)
    assert "bgd.methods.ewc" not in closure
    method = package / "methods" / "online_ewc.py"
    assert "bgd.methods.curvature.importance" in import_closure({"bgd.methods.online_ewc": method})


def test_relative_imports_are_followed_and_those_of_type_checkers_are_not(tmp_path):
    package = tmp_path / "mypackage"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text(
        "from typing import TYPE_CHECKING\nfrom . import b\nfrom .sub.c import value\n"
        "if TYPE_CHECKING:\n    from mypackage import unused\n"
    )
    (package / "b.py").write_text("import numpy\n")
    (package / "unused.py").write_text("")
    (package / "sub").mkdir()
    (package / "sub" / "c.py").write_text("from ..d import other\nvalue = 1\n")
    (package / "d.py").write_text("other = 1\n")
    closure = import_closure({"mypackage.a": package / "a.py"})
    assert sorted(closure) == ["mypackage.a", "mypackage.b", "mypackage.d", "mypackage.sub.c"]


def test_a_method_of_a_notebook_is_identified_by_its_source(monkeypatch):
    from bgd.methods import SGD

    class Mine(SGD):
        pass

    Mine.__module__ = "__main__"
    monkeypatch.setattr(sys.modules["__main__"], "Mine", Mine, raising=False)
    code._digest.cache_clear()
    assert code_digest(RunConfig(method="__main__:Mine")) != code_digest(RunConfig(method="sgd"))
