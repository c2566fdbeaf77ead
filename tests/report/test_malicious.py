"""Somebody else's results are read, never run: neither the modules that they name, nor what lies beside them."""

import json
import shutil
import sys

import pytest

from bgd.cli import main

EVIL = 'from pathlib import Path\nPath(__file__).with_name("ran").touch()\nclass Evil:\n    pass\nbuild = Evil\n'


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(one) for one in arguments])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    out = tmp_path_factory.mktemp("published")
    options = ["--column", "fading tasks", "--row", "SGD", "--executor", "serial", "--quiet", "--out", out]
    assert call("run", "digits", "--preset", "smoke", *options) == 0
    return out / "digits-smoke"


@pytest.mark.parametrize("what", ["method", "net", "data"])
def test_reports_never_import_what_results_name(published, tmp_path, monkeypatch, what):
    folder = shutil.copytree(published, tmp_path / "digits-smoke")
    (tmp_path / "malicious_module.py").write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "malicious_module:Evil"
    for path in (folder / "experiment.json", *folder.glob("*/config.json"), *folder.glob("*/result.json")):
        content = json.loads(path.read_text())
        if path.name == "experiment.json":
            content["experiment"]["import_paths"] = [str(tmp_path)]
            rows, setup = content["experiment"]["rows"], content["experiment"].setdefault("setup", {})
            for row in rows.values():
                row["method"] = name if what == "method" else row["method"]
        else:
            config = content.get("config", content)
            config["method"] = name if what == "method" else config["method"]
            setup = config["setup"]
        if what != "method":
            setup.setdefault(what, {})["name"] = name
        path.write_text(json.dumps(content) + "\n")
        (path.parent / "SHA256SUMS").unlink(missing_ok=True)
    commands = (
        ("report", folder, "--out", tmp_path / "page", "--quiet"),
        ("report", folder, "--json", "--format", "json", "--out", tmp_path / "page"),
        ("compare", folder, folder),
        ("pack", folder, "--out", tmp_path / "packed"),
    )
    assert [call(*command) for command in commands] == [0, 0, 0, 0]  # they were read and shown
    assert "malicious_module" not in sys.modules
    assert not (tmp_path / "ran").exists()
